// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace vitrail::kernels {

// The 3×3 neighbourhoods with padding 1 around every stride-th cell of maps [B, height, width, channels].
struct Neighbourhoods {
  static constexpr int64_t kTaps = 9;
  int64_t height, width, channels, stride;

  int64_t rows() const { return (height + stride - 1) / stride; }
  int64_t columns() const { return (width + stride - 1) / stride; }
  int64_t values() const { return kTaps * channels; }  // a neighbourhood has so many
};

// The neighbourhood of a cell of the result, counted over all maps x in row-major order: y [9, channels], taps in
// (dy, dx) order, 0 outside the map.
void unfold_cell(const float* x, const Neighbourhoods& of, int64_t cell, float* y);

// Neighbourhoods [first, first + count) of maps x: y [count, 9, channels].
void unfold_taps(const float* x, const Neighbourhoods& of, int64_t first, int64_t count, float* y);

}  // namespace vitrail::kernels
