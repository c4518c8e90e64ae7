// SPDX-License-Identifier: Apache-2.0
#pragma once
// Common parts of operations: the type in which a dtype is computed.
#include "vitrail/base/error.h"
#include "vitrail/ops/conversion_internal.h"
#include "vitrail/ops/recorder.h"

namespace vitrail::ops {

// f64 is computed in double, other floating dtypes in float: 16-bit inputs are converted, and so is the result.
inline DType compute_dtype(const Tensor& tensor, const char* where) {
  if (!is_floating(tensor.dtype())) throw Error(where, "a floating tensor", name_of(tensor.dtype()));
  return tensor.dtype() == DType::f64 ? DType::f64 : DType::f32;
}

// The detached tensor, contiguous and in `dtype`: an operation computes with it, and its backward function captures it.
// Undefined stays undefined.
inline Tensor prepared(const Tensor& tensor, DType dtype) {
  return tensor.defined() ? converted(tensor.detach().contiguous(), dtype) : tensor;
}

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
