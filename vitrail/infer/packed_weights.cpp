// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/packed_weights_internal.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/weight_quantization_internal.h"
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

// Writes a row of int8 values in the form that quantising its fp32 copy gives
// (kernels/gemm/weight_quantization_internal.h): values without a common factor, multiplied by the largest integer that
// their range allows.  Returns the new scale.  An int8 file and its dequantised copy then give the same bits.
float canonical_row(const int8_t* from, int64_t in, float scale, int8_t* to) {
  int common_factor = 0, max_value = 0, max_pair = 0;
  float max_magnitude = 0;
  for (int64_t c = 0; c < in; ++c) {
    const int64_t pair = c ^ 1;
    const int value = from[c], other = pair < in ? from[pair] : 0;
    common_factor = std::gcd(common_factor, value);
    max_value = std::max(max_value, std::abs(value));
    max_pair = std::max({max_pair, std::abs(value), std::abs(value + other)});
    const float v = scale * static_cast<float>(value), w = scale * static_cast<float>(other);
    max_magnitude = std::max({max_magnitude, std::abs(v), std::abs(v + w)});
  }
  if (max_value == 0) {
    std::copy_n(from, in, to);
    return 0;
  }
  const int multiple =
      std::min(2 * kernels::kMaxInt8 * common_factor / max_pair, kernels::kMaxInt8 * common_factor / max_value);
  if (multiple < 1) {  // the row has a value of −128, which symmetric quantisation does not use
    std::vector<float> row(static_cast<size_t>(in));
    std::transform(from, from + in, row.begin(), [scale](int8_t value) { return scale * static_cast<float>(value); });
    return kernels::quantize_weight_row(row.data(), in, to);
  }
  for (int64_t c = 0; c < in; ++c) to[c] = static_cast<int8_t>(from[c] / common_factor * multiple);
  return max_magnitude / static_cast<float>(max_pair / common_factor * multiple);
}

// [out, (channel, tap)] → [out, (tap, channel)]
Tensor taps_first(const Tensor& weight, int64_t taps) {
  if (taps == 1) return weight.contiguous();
  return weight.contiguous().view({weight.size(0), -1, taps}).transpose(1, 2).reshape(weight.shape());
}

QuantizedTensor canonical(const QuantizedTensor& weight, int64_t taps) {
  const Tensor values = taps_first(weight.values, taps), scales = weight.scales.contiguous();
  const int64_t in = values.size(1);
  const QuantizedTensor result{Tensor::empty(values.shape(), DType::i8), Tensor::empty(scales.shape())};
  parallel_for(0, values.size(0), 1 + 65536 / (in + 1), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      result.scales.data<float>()[r] = canonical_row(values.data<int8_t>() + r * in, in, scales.data<float>()[r],
                                                     result.values.data<int8_t>() + r * in);
    }
  });
  return result;
}

// Microkernels expect no −128, which symmetric quantisation does not use, but a file may have.
bool has_minus_128(const QuantizedTensor& weight) {
  const Tensor values = weight.values.contiguous();
  const auto* const begin = values.data<int8_t>();
  return std::find(begin, begin + values.numel(), int8_t{-128}) != begin + values.numel();
}

}  // namespace

PackedWeights::Packed PackedWeights::pack(const Tensor& weight, const Tensor& bias, int64_t taps) const {
  const Tensor dense_bias = bias.defined() ? bias.to(DType::f32).contiguous() : bias;
  const auto exception = exceptions_.find(weight.storage().get());
  const Precision precision = exception == exceptions_.end() ? precision_ : exception->second;
  if (const QuantizedTensor* const quantized = weight.quantized(); quantized && precision == Precision::int8) {
    const auto packed = packed_linear(canonical(*quantized, taps), dense_bias);
    if (!quantized->correction || taps > 1) return {packed, nullptr};
    const QuantizedTensor& correction = *quantized->correction;
    if (packed->takes_correction())
      return {packed, packed_linear(has_minus_128(correction) ? canonical(correction, 1) : correction, dense_bias)};
  }
  return {packed_linear(taps_first(weight.to(DType::f32), taps), dense_bias, precision), nullptr};
}

PackedWeights::Packed PackedWeights::get(const Tensor& weight, const Tensor& bias, int64_t taps) {
  const Key key{weight.storage().get(), weight.offset(), weight.size(0), weight.size(1), taps};
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second.packed;
  const Packed packed = pack(weight, bias, taps);
  bytes_ += packed.weight->packed_bytes() + (packed.correction ? packed.correction->packed_bytes() : 0);
  entries_[key] = {weight.storage(), packed};
  if (!retained_.contains(weight.storage().get())) weight.storage()->release();
  return packed;
}

}  // namespace vitrail::infer
