// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pooling of maps with their channels last.
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// The largest value of each 2×2 cells: x [B, h, w, C] → [B, ⌊h/2⌋, ⌊w/2⌋, C].  Source: torch.nn.MaxPool2d(2).
Tensor max_pool_2x2(const Tensor& x);

// The means of size × size cells: x [B, h, w, C] → [B, size, size, C].  Cell i has the rows ⌊i·h/size⌋ to
// ⌈(i+1)·h/size⌉ − 1.  Source: torch.nn.AdaptiveAvgPool2d.
Tensor adaptive_avg_pool(const Tensor& x, int64_t size);

}  // namespace vitrail::nn
