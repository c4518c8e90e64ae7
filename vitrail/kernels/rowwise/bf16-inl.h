// SPDX-License-Identifier: Apache-2.0
// fp32 to bf16 in vectors, bit for bit as BFloat16 rounds.
// Included once per target: Highway toggles the include guard.
#include <cstdint>

#include "hwy/highway.h"
#include "vitrail/base/dtype.h"

#if defined(VITRAIL_KERNELS_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_BF16_INL_H_
#undef VITRAIL_KERNELS_BF16_INL_H_
#else
#define VITRAIL_KERNELS_BF16_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The bits of floats → the bits of the nearest bf16 (ties to even) in the upper halves; NaN stays NaN.  The lower
// halves are undefined.  Integer arithmetic, because the processor's own conversion takes subnormals for zero.
template <class D>
HWY_INLINE hn::Vec<D> round_upper_half(D d, hn::Vec<D> u) {
  const hn::RebindToSigned<D> signed_d;
  const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(d, 1));
  const auto rounded = hn::Add(u, hn::Add(hn::Set(d, 0x7fff), odd));
  const auto magnitude = hn::And(hn::BitCast(signed_d, u), hn::Set(signed_d, 0x7fffffff));
  const auto nan = hn::RebindMask(d, hn::Gt(magnitude, hn::Set(signed_d, 0x7f800000)));
  return hn::IfThenElse(nan, hn::Or(u, hn::Set(d, 0x400000)), rounded);
}

// to [2 · lanes] = the upper halves of the elements of `low`, then those of `high`.
template <class D>
HWY_INLINE void store_upper_halves([[maybe_unused]] D d, hn::Vec<D> low, hn::Vec<D> high, uint16_t* to) {
#if HWY_TARGET == HWY_SCALAR
  to[0] = static_cast<uint16_t>(hn::GetLane(low) >> 16);
  to[1] = static_cast<uint16_t>(hn::GetLane(high) >> 16);
#else
  const hn::Repartition<uint16_t, D> half_d;
  hn::StoreU(hn::ConcatOdd(half_d, hn::BitCast(half_d, high), hn::BitCast(half_d, low)), half_d, to);
#endif
}

HWY_INLINE void round_to_bf16_row(const float* x, BFloat16* y, int64_t n) {
  const hn::ScalableTag<uint32_t> d;
  const hn::RebindToSigned<decltype(d)> signed_d;
  const hn::Rebind<uint16_t, decltype(d)> half_d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* const from = reinterpret_cast<const uint32_t*>(x);
  auto* const to = reinterpret_cast<uint16_t*>(y);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    store_upper_halves(d, round_upper_half(d, hn::LoadU(d, from + i)),
                       round_upper_half(d, hn::LoadU(d, from + i + lanes)), to + i);
  }
  for (; i + lanes <= n; i += lanes) {
    const auto bits = hn::ShiftRight<16>(round_upper_half(d, hn::LoadU(d, from + i)));
    hn::StoreU(hn::DemoteTo(half_d, hn::BitCast(signed_d, bits)), half_d, to + i);
  }
  for (; i < n; ++i) y[i] = BFloat16(x[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
