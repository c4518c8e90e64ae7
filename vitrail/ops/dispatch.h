// SPDX-License-Identifier: Apache-2.0
#pragma once
// What operations share: which C++ type computes which dtype.
#include "vitrail/base/error.h"
#include "vitrail/ops/conversion.h"
#include "vitrail/ops/recorder.h"

namespace vitrail::ops {

// f64 computes in double, everything else floating in float: 16-bit inputs are widened, the result is narrowed.
inline DType compute_dtype(const Tensor& tensor, const char* where) {
  if (!is_floating(tensor.dtype())) throw Error(where, "a floating tensor", name_of(tensor.dtype()));
  return tensor.dtype() == DType::f64 ? DType::f64 : DType::f32;
}

// The tensor as contiguous elements of `dtype`, without its place in the graph: what an operation computes with and its
// backward keeps.  Undefined stays undefined.
inline Tensor prepared(const Tensor& tensor, DType dtype) {
  return tensor.defined() ? converted(tensor.detach().contiguous(), dtype) : tensor;
}

// All extents but the last, as one.
inline int64_t rows_of(const Tensor& x) {
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < x.rank(); ++axis) rows *= x.size(axis);
  return rows;
}

template <class T>
const T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

// visitor(float{}) or visitor(double{}).
template <class Visitor>
void dispatch_compute(DType dtype, Visitor&& visitor) {
  if (dtype == DType::f64) {
    visitor(double{});
  } else {
    visitor(float{});
  }
}

}  // namespace vitrail::ops
