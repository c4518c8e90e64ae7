// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Multi-scale deformable attention (Zhu et al. 2021, "Deformable DETR", eq. 3;
// kernels/attention/deformable_attention.h): a query reads a few points of each map.  values [B, N, H, d]: the cells of
// the maps, one map behind the other; levels: their heights and widths, L of them with N cells together.  locations [B,
// Q, H, L, P, 2]: x and y of the points, from 0 to 1 inside a map, which is interpolated bilinearly and 0 outside.
// weights [B, Q, H, L, P] → [B, Q, H·d].  Differentiable.  Throws Error for shapes that do not match.
Tensor deformable_attention(const Tensor& values, const Tensor& locations, const Tensor& weights,
                            const std::vector<std::array<int64_t, 2>>& levels);

}  // namespace vitrail::ops
