// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/quantized_tensor.h"

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail {
namespace {

// result [out, in] = scale · value, or += with `add`.
void multiply_by_scales(const QuantizedTensor& weight, bool add, const Tensor& result) {
  const Tensor values = weight.values.contiguous(), scales = weight.scales.contiguous();
  const int64_t in = values.size(1);
  parallel_for(0, values.size(0), 1 + 65536 / (in + 1), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const int8_t* const from = values.data<int8_t>() + r * in;
      float* const to = result.data<float>() + r * in;
      const float scale = scales.data<float>()[r];
      for (int64_t c = 0; c < in; ++c) {
        const float value = scale * static_cast<float>(from[c]);
        to[c] = add ? to[c] + value : value;
      }
    }
  });
}

}  // namespace

void check(const QuantizedTensor& weight) {
  const Tensor &values = weight.values, &scales = weight.scales;
  const bool fits = values.defined() && scales.defined() && values.dtype() == DType::i8 && values.rank() == 2 &&
                    scales.dtype() == DType::f32 && scales.shape() == Shape{values.size(0)};
  if (!fits) {
    auto described = [](const Tensor& tensor) {
      return tensor.defined() ? str(name_of(tensor.dtype()), " ", tensor.shape()) : std::string("nothing");
    };
    throw Error("int8 weight", "i8 [out, in] with scales f32 [out]",
                str(described(values), " with ", described(scales)));
  }
  if (!weight.correction) return;
  check(*weight.correction);
  if (!(weight.correction->values.shape() == values.shape())) {
    throw Error("int8 weight", str("a correction ", values.shape()), weight.correction->values.shape().to_string());
  }
}

Tensor dequantize(const QuantizedTensor& weight, DType dtype) {
  check(weight);
  const Tensor result = Tensor::empty(weight.values.shape());
  multiply_by_scales(weight, false, result);
  if (weight.correction) multiply_by_scales(*weight.correction, true, result);
  return result.to(dtype);
}

QuantizedTensor rows_of(const QuantizedTensor& weight, int64_t first, int64_t count) {
  QuantizedTensor rows{weight.values.narrow(0, first, count), weight.scales.narrow(0, first, count)};
  if (weight.correction) {
    rows.correction = std::make_shared<const QuantizedTensor>(rows_of(*weight.correction, first, count));
  }
  return rows;
}

}  // namespace vitrail
