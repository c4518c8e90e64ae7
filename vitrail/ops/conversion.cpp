// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/conversion_internal.h"

#include "vitrail/kernels/rowwise/bf16_conversion.h"

namespace vitrail::ops {

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
