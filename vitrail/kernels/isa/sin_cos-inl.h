// SPDX-License-Identifier: Apache-2.0
// The sine and cosine of a vector of floats.  NaN gives NaN.  The coefficients are minimax fits of the relative error,
// as those of vector_math-inl.h. Included once per target: Highway toggles the include guard.
#include "hwy/highway.h"
#include "vitrail/kernels/isa/vector_math-inl.h"

#if defined(VITRAIL_KERNELS_SIN_COS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_SIN_COS_INL_H_
#undef VITRAIL_KERNELS_SIN_COS_INL_H_
#else
#define VITRAIL_KERNELS_SIN_COS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// sin x and cos x with an error of at most 1.2e-7 for |x| ≤ 10,000.  It grows with |x| beyond; they are not in [−1, 1]
// any more for |x| above 10^7.
template <class D, class V>
HWY_INLINE void sin_cos(D d, V x, V* sine, V* cosine) {
  // x = n π/2 + r with |r| ≤ π/4.  π/2 is split in three: n times the first two parts is exact without FMA for n <
  // 2^12.
  const hn::RebindToSigned<D> di;
  const auto n = hn::NearestInt(hn::Mul(x, hn::Set(d, 0.636619772f)));
  const V quarters = hn::ConvertTo(d, n);
  V r = hn::NegMulAdd(quarters, hn::Set(d, 1.5703125f), x);
  r = hn::NegMulAdd(quarters, hn::Set(d, 4.83751297e-4f), r);
  r = hn::NegMulAdd(quarters, hn::Set(d, 7.54979013e-8f), r);
  const V z = hn::Mul(r, r);
  const V sin_r = hn::MulAdd(hn::Mul(r, z), polynomial(d, z, -0.16666655f, 8.33216e-3f, -1.9515282e-4f), r);
  const V cos_r = polynomial(d, z, 1.0f, -0.5f, 0.041666646f, -1.3887316e-3f, 2.4433157e-5f);
  // Odd quarters exchange them; bit 1 of n is the sign of the sine, bit 1 of n + 1 that of the cosine.
  const auto one = hn::Set(di, 1), two = hn::Set(di, 2);
  const auto odd = hn::RebindMask(d, hn::TestBit(n, one));
  const V sine_sign = hn::BitCast(d, hn::ShiftLeft<30>(hn::And(n, two)));
  const V cosine_sign = hn::BitCast(d, hn::ShiftLeft<30>(hn::And(hn::Add(n, one), two)));
  *sine = hn::Xor(hn::IfThenElse(odd, cos_r, sin_r), sine_sign);
  *cosine = hn::Xor(hn::IfThenElse(odd, sin_r, cos_r), cosine_sign);
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
