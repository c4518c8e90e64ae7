// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Cuts a map x [B, h, w, C] into windows → [B·⌈h/n⌉·⌈w/n⌉, n·n, C], n = window, row by row in an image and in a window
// (Li et al. 2022, "Exploring Plain Vision Transformer Backbones for Object Detection", section 3).  Cells right of and
// below the map are `fill` [C], or 0 if it is undefined.  Differentiable in both.
Tensor window_partition(const Tensor& x, int64_t window, const Tensor& fill = {});

// The inverse for a map of this size: windows [B·⌈h/n⌉·⌈w/n⌉, n·n, C] → [B, h, w, C].  Differentiable.
Tensor window_unpartition(const Tensor& windows, int64_t window, int64_t height, int64_t width);

}  // namespace vitrail::ops
