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

using kernels::PackedConvolution;
using kernels::PackedLinear;
using kernels::Precision;

constexpr int64_t kTaps = kernels::Neighbourhoods::kTaps;

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

QuantizedTensor canonical(const QuantizedTensor& weight) {
  const Tensor values = weight.values.contiguous(), scales = weight.scales.contiguous();
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

// Undefined stays undefined.
Tensor in_f32(const Tensor& tensor) { return tensor.defined() ? tensor.to(DType::f32).contiguous() : tensor; }

}  // namespace

Precision PackedWeights::precision_of(const Tensor& weight) const {
  const auto exception = exceptions_.find(weight.storage().get());
  return exception == exceptions_.end() ? precision_ : exception->second;
}

PackedWeights::Packed PackedWeights::pack(const Tensor& weight, const Tensor& bias) const {
  const Tensor dense_bias = in_f32(bias);
  const Precision precision = precision_of(weight);
  if (const QuantizedTensor* const quantized = weight.quantized(); quantized && precision == Precision::int8) {
    const auto packed = packed_linear(canonical(*quantized), dense_bias);
    if (!quantized->correction) return {packed, nullptr};
    const QuantizedTensor& correction = *quantized->correction;
    if (packed->takes_correction())
      return {packed, packed_linear(has_minus_128(correction) ? canonical(correction) : correction, dense_bias)};
  }
  return {packed_linear(in_f32(weight), dense_bias, precision), nullptr};
}

// Quantised values keep their bits, so the channels of a file in int8 are as accurate as there.
std::shared_ptr<const PackedConvolution> PackedWeights::pack_convolution(const Tensor& weight, const Tensor& bias,
                                                                         int64_t stride) const {
  const Tensor dense_bias = in_f32(bias);
  const int64_t out = weight.size(0), in = weight.size(1);
  const float* const b = dense_bias.defined() ? dense_bias.data<float>() : nullptr;
  const Precision precision = precision_of(weight);
  if (const QuantizedTensor* const quantized = weight.quantized(); quantized && precision == Precision::int8) {
    const Tensor values = quantized->values.contiguous().view({out, -1, kTaps}).transpose(1, 2).reshape({out, in});
    const QuantizedTensor packed = canonical({values, quantized->scales});
    return std::make_shared<const PackedConvolution>(packed.values.data<int8_t>(), packed.scales.data<float>(), b, out,
                                                     in / kTaps);
  }
  const Tensor dense = in_f32(weight);
  return std::make_shared<const PackedConvolution>(dense.data<float>(), b, out, in / kTaps, stride, precision);
}

void PackedWeights::release(const Tensor& weight) {
  if (!retained_.contains(weight.storage().get())) weight.storage()->release();
}

PackedWeights::Packed PackedWeights::get(const Tensor& weight, const Tensor& bias) {
  const Key key{weight.storage().get(), weight.offset(), weight.size(0), weight.size(1)};
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second.packed;
  const Packed packed = pack(weight, bias);
  bytes_ += packed.weight->packed_bytes() + (packed.correction ? packed.correction->packed_bytes() : 0);
  entries_[key] = {weight.storage(), packed, nullptr};
  release(weight);
  return packed;
}

std::shared_ptr<const PackedConvolution> PackedWeights::convolution(const Tensor& weight, const Tensor& bias,
                                                                    int64_t stride) {
  const Key key{weight.storage().get(), weight.offset(), weight.size(0), weight.size(1)};
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second.convolution;
  const auto packed = pack_convolution(weight, bias, stride);
  bytes_ += packed->packed_bytes();
  entries_[key] = {weight.storage(), {}, packed};
  release(weight);
  return packed;
}

}  // namespace vitrail::infer
