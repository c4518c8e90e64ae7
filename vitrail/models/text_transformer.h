// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text towers of CLIP (Radford et al. 2021, "Learning Transferable Visual Models From Natural Language
// Supervision", section 2.4), SigLIP (Zhai et al. 2023) and CoCa (Yu et al. 2022, the unimodal part).
#include "vitrail/models/text_transformer_config.h"
#include "vitrail/nn/block.h"

namespace vitrail::models {

// [1, 1, n, n]: −∞ where a token would see a later one.
Tensor causal_mask(int64_t n);

// Token ids [B, N] (i64, N ≤ context_length) → embeddings [B, output_dim], not normalised.
//   x = token_embedding[ids] + positional_embedding;  blocks;  norm;  the pooled token;  proj
// With class_token, cls_emb follows the tokens, N = context_length, and padding is masked.
// Parameters: token_embedding.weight [V, C], positional_embedding [context_length, C] (with class_token one row more),
// cls_emb [C] with class_token, blocks.N.*, norm.*, proj.weight [output_dim, C], and proj.bias with projection_bias.
// Sources: transformers' CLIPTextModel and SiglipTextModel, OpenCLIP's TextTransformer.
class TextTransformer : public nn::Module {
 public:
  // Throws Error for a configuration out of range.
  TextTransformer(const TextTransformerConfig& config, const ParamSource& params);

  Tensor forward(const Tensor& ids) const { return forward(ids, pooled_rows(ids), padding_mask(ids)); }
  // rows [B] and padding_mask: what the functions of these names give.  A compiled program has them as inputs, because
  // they depend on the ids.
  Tensor forward(const Tensor& ids, const Tensor& rows, const Tensor& padding_mask) const;
  // The index of each text's pooled token among all B·N tokens.  Throws Error for a text without an end-of-text token.
  Tensor pooled_rows(const Tensor& ids) const;
  // [B, 1, T, T] with T = N + 1 tokens: −∞ where a token does not see another.  Not defined without class_token.
  Tensor padding_mask(const Tensor& ids) const;

  const TextTransformerConfig& config() const { return config_; }
  std::string type() const override { return "TextTransformer"; }
  void visit(nn::Visitor& visitor) override;

 private:
  Tensor embedded(const Tensor& ids) const;

  TextTransformerConfig config_;
  Tensor token_embedding_, positional_embedding_, cls_emb_;
  nn::ModuleList<nn::Block> blocks_;
  nn::LayerNorm norm_;
  nn::Linear proj_;
};

}  // namespace vitrail::models
