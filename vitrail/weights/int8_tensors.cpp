#include "vitrail/weights/int8_tensors.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/weights/finite.h"

namespace vitrail::weights {

Int8Weight to_int8(const Tensor& weight) {
  if (weight.rank() != 2) throw Error("int8 weight", "[out, in]", weight.shape().to_string());
  const Tensor dense = weight.to(DType::f32).contiguous();
  const int64_t out = dense.size(0), in = dense.size(1);
  if (const auto at = first_non_finite(dense)) {
    throw Error(str("int8 weight [", *at / in, ", ", *at % in, "]"), "a finite number", str(dense.data<float>()[*at]));
  }
  Int8Weight result{Tensor::empty({out, in}, DType::i8), Tensor::empty({out})};
  for (int64_t r = 0; r < out; ++r) {
    const float* const row = dense.data<float>() + r * in;
    auto* const numbers = result.numbers.data<int8_t>() + r * in;
    float largest = 0;
    for (int64_t c = 0; c < in; ++c) largest = std::max(largest, std::abs(row[c]));
    const float factor = largest > 0 ? 127.0f / largest : 0.0f;
    for (int64_t c = 0; c < in; ++c) numbers[c] = static_cast<int8_t>(std::nearbyint(row[c] * factor));
    result.scales.data<float>()[r] = largest / 127.0f;
  }
  return result;
}

Tensor from_int8(const Int8Weight& weight, DType dtype) {
  const Tensor numbers = weight.numbers.contiguous(), scales = weight.scales.to(DType::f32).contiguous();
  if (numbers.dtype() != DType::i8 || numbers.rank() != 2 || !(scales.shape() == Shape{numbers.size(0)})) {
    throw Error("int8 weight", "i8 [out, in] with scales [out]", str(numbers.shape(), " with ", scales.shape()));
  }
  const int64_t in = numbers.size(1);
  Tensor result = Tensor::empty(numbers.shape());
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    result.data<float>()[i] = scales.data<float>()[i / in] * static_cast<float>(numbers.data<int8_t>()[i]);
  }
  return result.to(dtype);
}

}  // namespace vitrail::weights
