// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/packed_weights.h"

namespace vitrail::infer {
namespace {

using kernels::PackedLinear;
using kernels::Precision;

std::shared_ptr<const PackedLinear> packed_linear(const Tensor& weight, const Tensor& bias, Precision precision) {
  return std::make_shared<const PackedLinear>(weight.data<float>(), bias.defined() ? bias.data<float>() : nullptr,
                                              weight.size(0), weight.size(1), precision);
}

Tensor sum(const Tensor& a, const Tensor& b) {
  const Tensor result = a.clone();
  for (int64_t i = 0; i < a.numel(); ++i) result.data<float>()[i] += b.data<float>()[i];
  return result;
}

// That of a weight that is rows of a storage's.
weights::Int8Weight rest_of(const weights::Int8Weight& rest, const Tensor& weight) {
  const int64_t first = weight.offset() / weight.size(1), count = weight.size(0);
  return {rest.numbers.narrow(0, first, count).contiguous(), rest.scales.narrow(0, first, count).contiguous()};
}

std::shared_ptr<const PackedLinear> packed_rest(const weights::Int8Weight& rest, const Tensor& bias) {
  return std::make_shared<const PackedLinear>(rest.numbers.data<int8_t>(), rest.scales.data<float>(),
                                              bias.defined() ? bias.data<float>() : nullptr, rest.numbers.size(0),
                                              rest.numbers.size(1));
}

}  // namespace

PackedWeights::Packed PackedWeights::pack(const Tensor& weight, const Tensor& bias) const {
  const Tensor dense = weight.to(DType::f32).contiguous(),
               offset = bias.defined() ? bias.to(DType::f32).contiguous() : bias;
  const auto exception = exceptions_.find(weight.storage().get());
  const Precision precision = exception == exceptions_.end() ? precision_ : exception->second;
  const auto rest = rests_.find(weight.storage().get());
  if (rest == rests_.end()) return {packed_linear(dense, offset, precision), nullptr};
  const weights::Int8Weight left = rest_of(rest->second, weight);
  if (precision == Precision::int8) {
    const auto whole = packed_linear(dense, offset, precision);
    if (whole->takes_correction()) return {whole, packed_rest(left, offset)};
  }
  return {packed_linear(sum(dense, weights::from_int8(left, DType::f32)), offset, precision), nullptr};
}

PackedWeights::Packed PackedWeights::get(const Tensor& weight, const Tensor& bias) {
  const Key key{weight.storage().get(), weight.offset(), weight.size(0), weight.size(1)};
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second.packed;
  const Packed packed = pack(weight, bias);
  bytes_ += packed.whole->packed_bytes() + (packed.rest ? packed.rest->packed_bytes() : 0);
  entries_[key] = {weight.storage(), packed};
  weight.storage()->release();
  return packed;
}

}  // namespace vitrail::infer
