// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/int8_weight.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/gemm/int8_weight.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// Every vector of the row, the last one filled up with zeros, until body(vector, first column) says no.
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

// The largest |w|, |v| or |w + v| of neighbours; NaN where something is not finite.
float heaviest_pair(const float* row, int64_t in) {
  const hn::ScalableTag<float> d;
  auto most = hn::Zero(d), poison = hn::Zero(d);
  every_vector(row, in, [&](auto v, int64_t) HWY_ATTR {
    const auto sum = hn::Add(v, hn::Reverse2(hn::ScalableTag<float>(), v));
    most = hn::Max(most, hn::Max(hn::Abs(v), hn::Abs(sum)));
    poison = hn::MulAdd(v, hn::Zero(d), poison);
    return true;
  });
  return hn::GetLane(hn::MaxOfLanes(d, most)) + hn::GetLane(hn::SumOfLanes(d, poison));
}

// Whether the row times factor is whole, but for the rounding of fp32, and within what a number may be.
bool is_whole(const float* row, int64_t in, float factor) {
  const hn::ScalableTag<float> d;
  const auto times = hn::Set(d, factor), slack = hn::Set(d, 1e-4f), most = hn::Set(d, kMaxInt8 + 0.5f);
  return every_vector(row, in, [&](auto v, int64_t) HWY_ATTR {
    const auto number = hn::Mul(v, times);
    const auto off = hn::Abs(hn::Sub(number, hn::Round(number)));
    return hn::AllTrue(d, hn::And(hn::Le(off, slack), hn::Lt(hn::Abs(number), most)));
  });
}

void round_row(const float* row, int64_t in, float factor, int8_t* numbers) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int8_t, decltype(d)> d8;
  const auto times = hn::Set(d, factor);
  every_vector(row, in, [&](auto v, int64_t c) HWY_ATTR {
    HWY_ALIGN int8_t rounded[HWY_MAX_BYTES];
    hn::Store(hn::DemoteTo(d8, hn::NearestInt(hn::Mul(v, times))), d8, rounded);
    std::copy_n(rounded, std::min<int64_t>(static_cast<int64_t>(hn::Lanes(d)), in - c), numbers + c);
    return true;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/kernels/isa/scalar_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(heaviest_pair, scalar::heaviest_pair);
VITRAIL_EXPORT(is_whole, scalar::is_whole);
VITRAIL_EXPORT(round_row, scalar::round_row);

}  // namespace

int max_int8_pair() { return active_features().has(Feature::avx512_vnni) ? 2 * kMaxInt8 : kMaxSaturatingPair; }

float quantize_weight_row(const float* row, int64_t in, int8_t* numbers) {
  return scalar::weight_numbers_by(row, in, numbers, VITRAIL_DISPATCH(heaviest_pair), VITRAIL_DISPATCH(is_whole),
                                   VITRAIL_DISPATCH(round_row));
}

}  // namespace vitrail::kernels
#endif
