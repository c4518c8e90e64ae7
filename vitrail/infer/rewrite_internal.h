// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graph rewrites of a recorded pass.  They do not change its results.
#include <vector>

#include "vitrail/ops/recorder.h"

namespace vitrail::infer {

// An operation of the list.  `residual` and, if there is one, `scale` are set if a residual_add was fused into a linear
// layer: out = residual + scale · linear(x).  `unfold_stride` is set if a linear layer unfolds its input, a map, by
// itself: it is a 3×3 convolution.
struct FusedOperation {
  ops::RecordedOperation op;
  Tensor residual = {}, scale = {};
  int64_t unfold_stride = 0;
  bool fused_residual() const { return residual.defined(); }
  bool unfolds() const { return unfold_stride > 0; }
};

// 1. A linear layer whose only reader is a residual_add performs the addition, which saves a pass over memory.
// 2. A linear layer that is the only reader of 3×3 neighbourhoods unfolds the map by itself, a few rows at a time.
// 3. Operations whose results nothing reads are removed.
// 4. An operation whose kernel writes strided results, such as an addition, and whose only reader is a concatenation,
//    writes directly into the concatenated tensor.
std::vector<FusedOperation> rewrite(std::vector<ops::RecordedOperation> operations, const std::vector<Tensor>& outputs);

}  // namespace vitrail::infer
