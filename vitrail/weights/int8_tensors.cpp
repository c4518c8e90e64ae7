// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/int8_tensors.h"

namespace vitrail::weights {
namespace {

double squared_error(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(DType::f32).contiguous(), y = b.to(DType::f32).contiguous();
  double sum = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double difference = double{x.data<float>()[i]} - y.data<float>()[i];
    sum += difference * difference;
  }
  return sum;
}

}  // namespace

Tensor to_16_bits(const Tensor& weight) {
  const Tensor f16 = weight.to(DType::f16), bf16 = weight.to(DType::bf16);
  return squared_error(f16, weight) <= squared_error(bf16, weight) ? f16 : bf16;
}

}  // namespace vitrail::weights
