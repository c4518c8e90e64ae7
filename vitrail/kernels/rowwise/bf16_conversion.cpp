// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/bf16_conversion.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/bf16_conversion.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/rowwise/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

void round_to_bf16_span(const float* x, BFloat16* y, int64_t n) { round_to_bf16_row(x, y, n); }

void widen_bf16_span(const BFloat16* x, float* y, int64_t n) {
  const hn::ScalableTag<uint32_t> d;
  const hn::Rebind<uint16_t, decltype(d)> half_d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* const from = reinterpret_cast<const uint16_t*>(x);
  auto* const to = reinterpret_cast<uint32_t*>(y);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(half_d, from + i))), d, to + i);
  }
  for (; i < n; ++i) y[i] = static_cast<float>(x[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(round_to_bf16_span, scalar::round_to_bf16_span);
VITRAIL_EXPORT(widen_bf16_span, scalar::widen_bf16_span);

constexpr int64_t kElementsPerTask = 32768;  // from L2 these take twice as long as starting the other threads

}  // namespace

void round_to_bf16(const float* x, BFloat16* y, int64_t n) {
  auto* const span = &VITRAIL_DISPATCH(round_to_bf16_span);
  parallel_for(0, n, kElementsPerTask, [&](int64_t first, int64_t last) { span(x + first, y + first, last - first); });
}

void widen_bf16(const BFloat16* x, float* y, int64_t n) {
  auto* const span = &VITRAIL_DISPATCH(widen_bf16_span);
  parallel_for(0, n, kElementsPerTask, [&](int64_t first, int64_t last) { span(x + first, y + first, last - first); });
}

}  // namespace vitrail::kernels
#endif
