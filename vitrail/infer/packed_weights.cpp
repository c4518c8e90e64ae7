// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/packed_weights.h"

#include "vitrail/tensor/quantized_tensor.h"

namespace vitrail::infer {
namespace {

using kernels::PackedLinear;
using kernels::Precision;

std::shared_ptr<const PackedLinear> packed_linear(const Tensor& weight, const Tensor& bias, Precision precision) {
  return std::make_shared<const PackedLinear>(weight.data<float>(), bias.defined() ? bias.data<float>() : nullptr,
                                              weight.size(0), weight.size(1), precision);
}

std::shared_ptr<const PackedLinear> packed_linear(const QuantizedTensor& weight, const Tensor& bias) {
  const Tensor values = weight.values.contiguous(), scales = weight.scales.contiguous();
  return std::make_shared<const PackedLinear>(values.data<int8_t>(), scales.data<float>(),
                                              bias.defined() ? bias.data<float>() : nullptr, values.size(0),
                                              values.size(1));
}

}  // namespace

PackedWeights::Packed PackedWeights::pack(const Tensor& weight, const Tensor& bias) const {
  const Tensor dense_bias = bias.defined() ? bias.to(DType::f32).contiguous() : bias;
  const auto exception = exceptions_.find(weight.storage().get());
  const Precision precision = exception == exceptions_.end() ? precision_ : exception->second;
  if (const QuantizedTensor* const quantized = weight.quantized(); quantized && precision == Precision::int8) {
    const auto packed = packed_linear(*quantized, dense_bias);
    if (!quantized->correction) return {packed, nullptr};
    if (packed->takes_correction()) return {packed, packed_linear(*quantized->correction, dense_bias)};
  }
  return {packed_linear(weight.to(DType::f32).contiguous(), dense_bias, precision), nullptr};
}

PackedWeights::Packed PackedWeights::get(const Tensor& weight, const Tensor& bias) {
  const Key key{weight.storage().get(), weight.offset(), weight.size(0), weight.size(1)};
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second.packed;
  const Packed packed = pack(weight, bias);
  bytes_ += packed.weight->packed_bytes() + (packed.correction ? packed.correction->packed_bytes() : 0);
  entries_[key] = {weight.storage(), packed};
  weight.storage()->release();
  return packed;
}

}  // namespace vitrail::infer
