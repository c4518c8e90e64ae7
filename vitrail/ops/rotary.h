// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rotary position embedding (Su et al. 2021, "RoFormer", eq. 34).
#include "vitrail/kernels/rowwise/rotary.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

using kernels::RotaryPairs;

// angles [..., d/2] → [..., d]: their cosines, then their sines.  Differentiable.
Tensor rotary_table(const Tensor& angles);

// Rotates the queries and keys of a fused projection qkv [B, N, 3·H·d] → [B, N, 3·H·d]; values stay.  Pair i of a head
// becomes (a · cos − b · sin, b · cos + a · sin) by row `token` of the table [B or 1, H or 1, P, d].  The table is for
// the last P tokens; the prefix of N − P tokens is not rotated.  Differentiable.  Throws Error for shapes that do not
// match. A compiled program rotates in place.
Tensor rotary(const Tensor& qkv, const Tensor& table, int64_t heads, RotaryPairs pairs);

}  // namespace vitrail::ops
