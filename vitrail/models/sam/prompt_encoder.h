// SPDX-License-Identifier: Apache-2.0
#pragma once
// Segment Anything's prompt encoder (Kirillov et al. 2023; segment_anything/modeling/prompt_encoder.py).
#include <array>
#include <vector>

#include "vitrail/models/sam/config.h"
#include "vitrail/nn/convolution.h"
#include "vitrail/nn/layer_norm.h"

namespace vitrail::models {

// What a point of a prompt is.  The values are the reference's labels, and behind them the corners of a box.
enum class SamPoint : int8_t { padding = -1, outside = 0, inside = 1, top_left = 2, bottom_right = 3 };

// Parameters: pe_layer.positional_encoding_gaussian_matrix [2, C/2], a buffer that is not trained; point_embeddings.0
// to .3, not_a_point_embed, no_mask_embed [1, C]; mask_downscaling.
class SamPromptEncoder : public nn::Module {
 public:
  SamPromptEncoder(const SamConfig& config, const ParamSource& params);

  // Points [B, N, 2] (x, y) of the encoder's input in pixels, f32 or f64, and what they are, B·N → [B, N, C].  Points
  // are at the centre of their pixel.
  Tensor points(const Tensor& coordinates, const std::vector<SamPoint>& kinds) const;
  // Logits [B, 1, 4·h, 4·w] → [B, h, w, C], which is added to the image embedding.
  Tensor mask(const Tensor& logits) const;
  // The same without a mask, [1, 1, 1, C].
  Tensor no_mask() const;
  // The positional encoding of the cells of the image embedding, [1, h, w, C].
  Tensor grid_positions() const;

  std::string type() const override { return "PromptEncoder"; }
  void visit(nn::Visitor& visitor) override;

 private:
  // Random Fourier features (Tancik et al. 2020): [sin(2π p G) | cos(2π p G)] of p = 2·(x, y) − 1, x and y in [0, 1].
  void encode(double x, double y, float* to) const;

  SamConfig config_;
  Tensor gaussian_;
  std::array<Tensor, 4> point_embeddings_;
  Tensor not_a_point_, no_mask_;
  nn::Conv2d conv1_;
  nn::LayerNorm norm1_;
  nn::Conv2d conv2_;
  nn::LayerNorm norm2_;
  nn::Conv2d conv3_;
};

}  // namespace vitrail::models
