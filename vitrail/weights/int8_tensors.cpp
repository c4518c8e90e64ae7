#include "vitrail/weights/int8_tensors.h"

#include "vitrail/base/error.h"

namespace vitrail::weights {

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
