// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/dispatch.h"

#include "vitrail/kernels/rowwise/bf16_conversion.h"

namespace vitrail::ops {

DType compute_dtype(const Tensor& tensor, const std::string& where) {
  if (!is_floating(tensor.dtype())) throw Error(where, "a floating tensor", name_of(tensor.dtype()));
  return tensor.dtype() == DType::f64 ? DType::f64 : DType::f32;
}

Tensor prepared(const Tensor& tensor, DType dtype) {
  return tensor.defined() ? converted(tensor.detach().contiguous(), dtype) : tensor;
}

Tensor converted(const Tensor& tensor, DType dtype) {
  const bool narrows = tensor.dtype() == DType::f32 && dtype == DType::bf16;
  const bool widens = tensor.dtype() == DType::bf16 && dtype == DType::f32;
  if ((!narrows && !widens) || !tensor.is_contiguous() || tensor.is_meta()) return tensor.to(dtype);
  const Tensor result = Tensor::empty(tensor.shape(), dtype);
  if (narrows) {
    kernels::round_to_bf16(tensor.data<float>(), result.data<BFloat16>(), tensor.numel());
  } else {
    kernels::widen_bf16(tensor.data<BFloat16>(), result.data<float>(), tensor.numel());
  }
  return result;
}

}  // namespace vitrail::ops
