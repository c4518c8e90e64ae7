// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/int8_tensors.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::weights {
namespace {

double squares_apart(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(DType::f32).contiguous(), y = b.to(DType::f32).contiguous();
  double sum = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double apart = double{x.data<float>()[i]} - y.data<float>()[i];
    sum += apart * apart;
  }
  return sum;
}

}  // namespace

Tensor in_16_bits(const Tensor& weight) {
  const Tensor half = weight.to(DType::f16), brain = weight.to(DType::bf16);
  return squares_apart(half, weight) <= squares_apart(brain, weight) ? half : brain;
}

void check_int8(const Int8Weight& weight) {
  const Tensor &numbers = weight.numbers, &scales = weight.scales;
  if (numbers.dtype() == DType::i8 && numbers.rank() == 2 && scales.dtype() == DType::f32 &&
      scales.shape() == Shape{numbers.size(0)}) {
    return;
  }
  throw Error(
      "int8 weight", "i8 [out, in] with scales f32 [out]",
      str(name_of(numbers.dtype()), " ", numbers.shape(), " with ", name_of(scales.dtype()), " ", scales.shape()));
}

Tensor from_int8(const Int8Weight& weight, DType dtype) {
  check_int8(weight);
  const Tensor numbers = weight.numbers.contiguous(), scales = weight.scales.contiguous();
  const int64_t in = numbers.size(1);
  Tensor result = Tensor::empty(numbers.shape());
  parallel_for(0, numbers.size(0), 1 + 65536 / (in + 1), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const int8_t* const from = numbers.data<int8_t>() + r * in;
      const float scale = scales.data<float>()[r];
      std::transform(from, from + in, result.data<float>() + r * in,
                     [scale](int8_t number) { return scale * static_cast<float>(number); });
    }
  });
  return result.to(dtype);
}

}  // namespace vitrail::weights
