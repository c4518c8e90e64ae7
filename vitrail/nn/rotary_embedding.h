// SPDX-License-Identifier: Apache-2.0
#pragma once
// The angles of rotary position embeddings on a grid of patches.
#include <array>
#include <optional>
#include <vector>

#include "vitrail/nn/module.h"

namespace vitrail::nn {

// cat: the coordinate of a patch is its index i + offset, scaled by reference / n if there is a reference grid (EVA-02,
// Perception Encoder, RoPE-ViT axial).  dinov3: 2π · (2 (i + ½ + offset) / n − 1), relative to the image (DINOv3).
// mixed: i, with frequencies that are learned per block, head and axis (RoPE-ViT mixed).  n: patches along the axis.
enum class RotaryType : uint8_t { cat, dinov3, mixed };

struct RotaryEmbeddingConfig {
  int64_t head_dim = 0;              // divisible by 4
  int64_t num_heads = 0, depth = 0;  // for mixed
  RotaryType type = RotaryType::cat;
  double temperature = 10000;  // θ
  double offset = 0;           // added to the index; not for mixed
  bool x_first = false;        // the first half of the angles is for x, the second for y; else y, then x
  std::optional<std::array<int64_t, 2>> reference = {};  // height and width of the grid of the training images; for cat
  std::vector<double> periods = {};                      // head_dim / 4 periods; empty: θ^(j / (head_dim / 4))
};

// Axial angles: the coordinate of y divided by each period, then that of x (Heo et al. 2024, "Rotary position embedding
// for vision transformer", eq. 9; Siméoni et al. 2025, "DINOv3").  Mixed: y · freqs[0] + x · freqs[1], or
// with x_first x · freqs[0] + y · freqs[1] (Heo et al., eq. 12).  Parameter of mixed: freqs [2, depth, heads, d/2].
// Source: timm's RotaryEmbeddingCat, RotaryEmbeddingDinoV3 and RotaryEmbeddingMixed.
class RotaryEmbedding : public Module {
 public:
  RotaryEmbedding(const RotaryEmbeddingConfig& config, const ParamSource& params);

  // The tables of ops::rotary [1, H or 1, patches, head_dim] for a grid of {height, width} patches, row by row: one per
  // block for mixed, else one for all blocks.
  std::vector<Tensor> tables(const std::array<int64_t, 2>& grid, DType dtype) const;

  std::string type() const override { return "RotaryEmbedding"; }
  void visit(Visitor& visitor) override { visitor.parameter("freqs", freqs_); }

 private:
  Tensor positions(const std::array<int64_t, 2>& grid) const;
  Tensor axial_angles(const Tensor& positions) const;
  Tensor mixed_angles(const Tensor& positions, int64_t block) const;

  RotaryEmbeddingConfig config_;
  Tensor freqs_;
};

}  // namespace vitrail::nn
