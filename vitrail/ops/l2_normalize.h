// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// x / max(‖x‖, 1e-12) over the last axis, as torch.nn.functional.normalize.  x [..., C].  Differentiable.  For losses
// and heads that are used in training only: it has no operator of ONNX.  Throws Error for a scalar.
Tensor l2_normalize(const Tensor& x);

}  // namespace vitrail::ops
