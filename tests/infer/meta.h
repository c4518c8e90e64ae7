// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors without data, for functions that are recorded.
#include "vitrail/ops/recorder.h"

namespace vitrail::infer {

inline Tensor meta(const Shape& shape, DType dtype = DType::f32) { return Tensor::empty(shape, dtype, Device::meta); }

inline ops::RecordedOperation recorded(ops::Operation operation, std::vector<Tensor> inputs,
                                       std::vector<Tensor> outputs) {
  return {std::make_shared<const ops::Operation>(std::move(operation)), std::move(inputs), std::move(outputs)};
}

}  // namespace vitrail::infer
