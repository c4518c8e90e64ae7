// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text towers of CLIP (Radford et al. 2021, "Learning Transferable Visual Models From Natural Language
// Supervision", section 2.4) and SigLIP (Zhai et al. 2023).
#include "vitrail/models/text_transformer_config.h"
#include "vitrail/nn/block.h"

namespace vitrail::models {

// Token ids [B, N] (i64, N ≤ context_length) → embeddings [B, output_dim], not normalised.
//   x = token_embedding[ids] + positional_embedding;  blocks;  norm;  the pooled token;  proj
// Parameters: token_embedding.weight [V, C], positional_embedding [context_length, C], blocks.N.*, norm.*,
// proj.weight [output_dim, C], and proj.bias with projection_bias.  Sources: transformers' CLIPTextModel and
// SiglipTextModel, OpenCLIP's TextTransformer.
class TextTransformer : public nn::Module {
 public:
  // Throws Error for a configuration out of range.
  TextTransformer(const TextTransformerConfig& config, const ParamSource& params);

  Tensor forward(const Tensor& ids) const { return forward(ids, pooled_rows(ids)); }
  // rows [B]: what pooled_rows() gives.  A compiled program has it as an input, because it depends on the ids.
  Tensor forward(const Tensor& ids, const Tensor& rows) const;
  // The index of each text's pooled token among all B·N tokens.  Throws Error for a text without an end-of-text token.
  Tensor pooled_rows(const Tensor& ids) const;

  const TextTransformerConfig& config() const { return config_; }
  std::string type() const override { return "TextTransformer"; }
  void visit(nn::Visitor& visitor) override;

 private:
  TextTransformerConfig config_;
  Tensor token_embedding_, positional_embedding_;
  nn::ModuleList<nn::Block> blocks_;
  nn::LayerNorm norm_;
  nn::Linear proj_;
};

}  // namespace vitrail::models
