// SPDX-License-Identifier: Apache-2.0
#pragma once
// The parts of convolutions that are no linear layer.  Maps have their channels last.
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// The 3×3 neighbourhood of each cell: x [B, h, w, C] → [B, h, w, 9·C], its elements in (c, dy, dx) order, 0 outside the
// map.  A linear layer with a convolution's weight [D, C·3·3] behind it is the convolution with padding 1 and stride 1.
// Differentiable.
Tensor unfold_3x3(const Tensor& x);

// Each cell becomes factor × factor cells: x [B, h, w, C·f·f] with elements in (c, dy, dx) order → [B, f·h, f·w, C].
// Behind a linear layer with a transposed convolution's weight it is that convolution with kernel = stride = factor.
// Differentiable.
Tensor pixel_shuffle(const Tensor& x, int64_t factor);

}  // namespace vitrail::ops
