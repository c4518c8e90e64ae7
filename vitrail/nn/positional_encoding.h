// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "vitrail/nn/dropout.h"

namespace vitrail::nn {

// The table P [1, length, dim]: P[i, 2j] = sin(i / 10000^(2j/dim)), P[i, 2j+1] = cos(i / 10000^(2j/dim))
// (Vaswani et al. 2017, section 3.5).  Throws Error for an odd dim.
Tensor sinusoidal_positions(int64_t length, int64_t dim);

// The table [1, h·w, dim] of a grid (h, w), row-major: sin(x ω), cos(x ω), sin(y ω), cos(y ω), a quarter of dim each,
// with ω_i = 10000^(−i / (dim/4)).  Throws Error if 4 does not divide dim.
// Source: get_2d_sincos_pos_embed of MAE (He et al. 2022) and MoCo v3.  big_vision's posemb_sincos_2d has the same
// order, but its last ω is exactly 1/10000.
Tensor sincos_positions_2d(std::array<int64_t, 2> grid, int64_t dim);

// x [B, N, dim] → dropout(x + P[:, :N]), without parameters.  Throws Error for N > max_len.
// Source: Dive into Deep Learning, section 11.6.3.
class PositionalEncoding : public Module {
 public:
  explicit PositionalEncoding(int64_t dim, double dropout = 0, int64_t max_len = 1000, std::string path = "");
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "PositionalEncoding"; }
  void visit(Visitor& visitor) override { visitor.child("dropout", static_cast<Module&>(dropout_)); }

 private:
  Tensor table_;
  Dropout dropout_;
};

// How learned positions are resampled to another grid.
struct PositionResampling {
  bool antialias = true;  // true in timm; false in Hugging Face's models and DINO
  bool bilinear = false;  // bicubic otherwise
  // The corners of both grids coincide, as of RADIO v3; without antialias and offset.
  bool align_corners = false;
  double offset = 0;  // added to the target extents to compute the scale: 0.1 in DINO and DINOv2
};

// positions [1, prefix + h·w, D] for the grid `from` → [1, prefix + h'·w', D] for the grid `to`.  The prefix does not
// change.  As torch's interpolate (bicubic: a = −0.75, with antialias −0.5), in double.  Differentiable.  Throws Error
// for a grid that is not the tensor's, and for align_corners with antialias or an offset. Sources: timm
// resample_abs_pos_embed; transformers' interpolate_pos_encoding; DINOv2's interpolate_pos_encoding.
Tensor resample_positions(const Tensor& positions, int64_t prefix, std::array<int64_t, 2> from,
                          std::array<int64_t, 2> to, const PositionResampling& how);

}  // namespace vitrail::nn
