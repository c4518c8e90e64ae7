// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// The largest value of each 2×2 cells, channel by channel: x [B, h, w, C] → [B, ⌊h/2⌋, ⌊w/2⌋, C].  A last row or column
// without a partner is left out.  Differentiable: the gradient goes to the first of equal values.  As torch's
// max_pool2d(kernel_size=2).  Throws Error for another rank and for sides below 2.
Tensor max_pool_2x2(const Tensor& x);

}  // namespace vitrail::ops
