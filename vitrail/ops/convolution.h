// SPDX-License-Identifier: Apache-2.0
#pragma once
// The parts of convolutions that are no linear layer.  Maps have their channels last.
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// The 3×3 neighbourhood of each cell, or of every stride-th: x [B, h, w, C] → [B, ⌈h/s⌉, ⌈w/s⌉, 9·C], its elements in
// (c, dy, dx) order, 0 outside the map.  A linear layer with a convolution's weight [D, C·3·3] behind it is the
// convolution with padding 1.  Differentiable.  Throws Error for a stride below 1.
Tensor unfold_3x3(const Tensor& x, int64_t stride = 1);

// A neighbourhood of kernel × kernel cells at every stride-th place of a map with `padding` cells of 0 around it.
struct Unfolding {
  int64_t kernel = 3, stride = 1, padding = 1;
};

// The same for other neighbourhoods: x [B, h, w, C] → [B, h', w', C·k·k] with h' = ⌊(h + 2·padding − k) / stride⌋ + 1.
// Differentiable.  Throws Error for a kernel that does not fit into the padded map, or of the padding's size or less.
Tensor unfold(const Tensor& x, const Unfolding& how);

// Rows [first, first + count) of the result of unfold_3x3() alone, [B, count, ⌈w/s⌉, 9·C], for maps whose
// neighbourhoods take too much memory at once.  Throws Error for rows that the result does not have.
Tensor unfold_3x3_rows(const Tensor& x, int64_t stride, int64_t first, int64_t count);

// The convolution of each channel by itself, with padding 1: x [B, h, w, C], weight [C, 3, 3], bias [C] → [B, ⌈h/s⌉,
// ⌈w/s⌉, C].  Differentiable.  Throws Error for shapes that do not match and a stride below 1.
Tensor depthwise_conv_3x3(const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t stride = 1);

// Each cell becomes factor × factor cells: x [B, h, w, C·f·f] with elements in (c, dy, dx) order → [B, f·h, f·w, C].
// Behind a linear layer with a transposed convolution's weight it is that convolution with kernel = stride = factor.
// Differentiable.
Tensor pixel_shuffle(const Tensor& x, int64_t factor);

}  // namespace vitrail::ops
