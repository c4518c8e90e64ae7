// SPDX-License-Identifier: Apache-2.0
#pragma once
// Segment Anything's two-way transformer: prompt tokens attend to the image and the image to them
// (segment_anything/modeling/transformer.py).
#include "vitrail/models/sam/config.h"
#include "vitrail/nn/downsampled_attention.h"
#include "vitrail/nn/layer_norm.h"
#include "vitrail/nn/mlp.h"

namespace vitrail::models {

// Tokens [B, T, C] and the image's cells [B, P, C], with a batch of 1 where all samples are equal.
struct SamStreams {
  Tensor tokens, image;
};

// The projections of the image in the first layer's cross-attention, [1, P, C/r]: equal for all prompts without a mask.
struct SamImageProjections {
  Tensor query, key, value;
};

class SamTwoWayBlock : public nn::Module {
 public:
  // first: self-attention has no positions and no residual.
  SamTwoWayBlock(const SamDecoderConfig& config, bool first, const ParamSource& params);
  // projections: of streams.image, where they are known.
  SamStreams forward(const SamStreams& streams, const SamStreams& positions,
                     const SamImageProjections* projections = nullptr) const;
  SamImageProjections project(const Tensor& image, const Tensor& positions) const;
  std::string type() const override { return "TwoWayAttentionBlock"; }
  void visit(nn::Visitor& visitor) override;

 private:
  Tensor self_attention(const Tensor& tokens, const Tensor& positions) const;

  bool first_;
  nn::DownsampledAttention self_attn_;
  nn::LayerNorm norm1_;
  nn::DownsampledAttention token_to_image_;
  nn::LayerNorm norm2_;
  nn::Mlp mlp_;
  nn::LayerNorm norm3_, norm4_;
  nn::DownsampledAttention image_to_token_;
};

class SamTwoWayTransformer : public nn::Module {
 public:
  SamTwoWayTransformer(const SamDecoderConfig& config, const ParamSource& params);
  // The initial tokens are their own positions; image_positions [1, P, C]; projections of project(), where known.
  SamStreams forward(const Tensor& tokens, const Tensor& image, const Tensor& image_positions,
                     const SamImageProjections* projections = nullptr) const;
  SamImageProjections project(const Tensor& image, const Tensor& image_positions) const;
  std::string type() const override { return "TwoWayTransformer"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::ModuleList<SamTwoWayBlock> layers_;
  nn::DownsampledAttention final_attn_;
  nn::LayerNorm norm_final_;
};

}  // namespace vitrail::models
