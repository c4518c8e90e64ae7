// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/weight_quantization_internal.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/gemm/weight_quantization.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// Calls body(vector, first column) for all vectors of a row, the last one padded with zeros, until it returns false.
template <class Body>
HWY_INLINE bool every_vector(const float* row, int64_t in, const Body& body) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= in; c += lanes) {
    if (!body(hn::LoadU(d, row + c), c)) return false;
  }
  return c == in || body(load_first(d, row + c, in - c), c);
}

float max_value_or_pair(const float* row, int64_t in) {
  const hn::ScalableTag<float> d;
  auto max = hn::Zero(d), poison = hn::Zero(d);
  every_vector(row, in, [&](auto v, int64_t) HWY_ATTR {
    const auto pair = hn::Add(v, hn::Reverse2(hn::ScalableTag<float>(), v));
    max = hn::Max(max, hn::Max(hn::Abs(v), hn::Abs(pair)));
    poison = hn::MulAdd(v, hn::Zero(d), poison);
    return true;
  });
  return hn::GetLane(hn::MaxOfLanes(d, max)) + hn::GetLane(hn::SumOfLanes(d, poison));
}

bool is_integral(const float* row, int64_t in, float inverse_scale) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, inverse_scale), tolerance = hn::Set(d, 1e-4f), limit = hn::Set(d, kMaxInt8 + 0.5f);
  return every_vector(row, in, [&](auto v, int64_t) HWY_ATTR {
    const auto value = hn::Mul(v, factor);
    const auto error = hn::Abs(hn::Sub(value, hn::Round(value)));
    return hn::AllTrue(d, hn::And(hn::Le(error, tolerance), hn::Lt(hn::Abs(value), limit)));
  });
}

void round_to_int8(const float* row, int64_t in, float inverse_scale, int8_t* values) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int8_t, decltype(d)> d8;
  const auto factor = hn::Set(d, inverse_scale);
  every_vector(row, in, [&](auto v, int64_t c) HWY_ATTR {
    HWY_ALIGN int8_t rounded[HWY_MAX_BYTES];
    hn::Store(hn::DemoteTo(d8, hn::NearestInt(hn::Mul(v, factor))), d8, rounded);
    std::copy_n(rounded, std::min<int64_t>(static_cast<int64_t>(hn::Lanes(d)), in - c), values + c);
    return true;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/kernels/gemm/scalar_gemm_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(max_value_or_pair, scalar::max_value_or_pair);
VITRAIL_EXPORT(is_integral, scalar::is_integral);
VITRAIL_EXPORT(round_to_int8, scalar::round_to_int8);

}  // namespace

int max_int8_pair() {
  const FeatureSet features = active_features();
  const bool exact = features.has(Feature::avx512_vnni) || features.has(Feature::neon);
  return exact ? 2 * kMaxInt8 : kSaturationLimit;
}

float quantize_weight_row(const float* row, int64_t in, int8_t* values) {
  return scalar::quantize_weight_row_by(row, in, values, VITRAIL_DISPATCH(max_value_or_pair),
                                        VITRAIL_DISPATCH(is_integral), VITRAIL_DISPATCH(round_to_int8));
}

}  // namespace vitrail::kernels
#endif
