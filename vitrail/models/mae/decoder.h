// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/models/mae/config.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::models {

// The decoder of masked autoencoders (He et al. 2022, section 3): the encoder's tokens, projected, and a learned token
// in the place of each masked patch; positions; blocks; norm; the pixels of all patches.
// Parameters: embed.*, mask_token, pos_embed, blocks.N.*, norm.*, pred.*.  pos_embed is a table of sines and cosines,
// zeros for the prefix, which is not trained.
class MaeDecoder : public nn::Module {
 public:
  MaeDecoder(const MaskedAutoencoderConfig& config, const ParamSource& params);
  // tokens [B, prefix + K, D] of the patches `kept`, different ones of a grid of N → [B, N, C·P·P], in the order of
  // ops::patchify().  Of a grid that is not the model's own, positions are resampled as the encoder's.
  Tensor forward(const Tensor& tokens, const PatchIndices& kept, std::array<int64_t, 2> grid) const;
  std::string type() const override { return "MaeDecoder"; }
  void visit(nn::Visitor& visitor) override;

 private:
  Tensor with_mask_tokens(const Tensor& tokens, const PatchIndices& kept, int64_t patches) const;

  VisionTransformerConfig config_;
  nn::Linear embed_;
  Tensor mask_token_, pos_embed_;
  nn::ModuleList<nn::Block> blocks_;
  nn::LayerNorm norm_;
  nn::Linear pred_;
};

}  // namespace vitrail::models
