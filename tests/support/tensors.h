// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors whose elements tell their place.
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::testing {

// 0, 1, 2, … in row-major order.
inline Tensor counting(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::from(shape, values);
}

}  // namespace vitrail::testing
