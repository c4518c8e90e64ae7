// SPDX-License-Identifier: Apache-2.0
#pragma once
// The type in which an operation computes, and conversions to it.
#include <string>

#include "vitrail/base/error.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// f64 is computed in double, other floating dtypes in float: 16-bit inputs are converted, and so is the result.  Throws
// Error at `where` for an integer tensor.
DType compute_dtype(const Tensor& tensor, const std::string& where);

// Converts as Tensor::to, but is not differentiable, and vectorised between f32 and bf16 for mixed precision.
Tensor converted(const Tensor& tensor, DType dtype);

// The detached tensor, contiguous and in `dtype`: an operation computes with it, and its backward function captures it.
// Undefined stays undefined.
Tensor prepared(const Tensor& tensor, DType dtype);

// The number of rows: the product of all extents but the last.
inline int64_t rows_of(const Tensor& x) {
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < x.rank(); ++axis) rows *= x.size(axis);
  return rows;
}

template <class T>
const T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

// Calls visitor(double{}) for f64, else visitor(float{}).
template <class Visitor>
void dispatch_compute(DType dtype, Visitor&& visitor) {
  if (dtype == DType::f64) {
    visitor(double{});
  } else {
    visitor(float{});
  }
}

}  // namespace vitrail::ops
