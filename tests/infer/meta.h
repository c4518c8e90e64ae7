// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors without data, for functions that are recorded.
#include "vitrail/ops/recorder.h"

namespace vitrail::infer {

inline Tensor meta(const Shape& shape, DType dtype = DType::f32) { return ops::symbolic_result(shape, dtype); }

}  // namespace vitrail::infer
