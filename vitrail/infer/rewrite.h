// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rewrites of a recorded pass that leave its results unchanged.
#include <vector>

#include "vitrail/ops/recorder.h"

namespace vitrail::infer {

// An operation of the list being compiled.  `residual` (and `scale`) are set where a residual_add was fused into the
// linear before it: out = residual + scale · linear(x).
struct FusedOperation {
  ops::Operation op;
  Tensor residual, scale;
  bool fused_residual() const { return residual.defined(); }
};

// 1. A linear layer whose only reader is a residual_add takes the addition over, so that the product is not written
//    and read once more.
// 2. Operations whose results nothing reads are removed.
// 3. An addition whose only reader is a concatenation writes its part of the joined tensor directly.
std::vector<FusedOperation> rewrite(std::vector<ops::Operation> operations, const std::vector<Tensor>& outputs);

}  // namespace vitrail::infer
