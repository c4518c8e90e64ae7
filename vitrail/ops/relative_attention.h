// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Self-attention of the cells of a grid (rows, columns) with decomposed relative positions (Li et al. 2022, "MViTv2",
// eq. 4; Segment Anything's image encoder): softmax(scale · q kᵀ + bias) v with
//   bias[(y, x), (v, u)] = q·row_table[y − v + rows − 1] + q·column_table[x − u + columns − 1],  q unscaled.
// qkv [B, rows·columns, 3·H·d] → [B, rows·columns, H·d]; row_table [2·rows − 1, d], column_table [2·columns − 1, d].
// Neither the scores [B, H, N, N] nor their gradients are stored: the memory of both passes grows with N, but for f64,
// which stores them.  In sessions in half or int8 the operands of its GEMMs have 16 bits.  Differentiable.  Throws
// Error for shapes that do not match.
Tensor relative_self_attention(const Tensor& qkv, int64_t heads, double scale, const Tensor& row_table,
                               const Tensor& column_table, std::array<int64_t, 2> grid);

}  // namespace vitrail::ops
