// SPDX-License-Identifier: Apache-2.0
// Polynomials, e^x and 2^x of a vector of floats.  NaN gives NaN.  The coefficients are minimax fits of the relative
// error (Lawson's iteration on Chebyshev nodes).
// Included once per target: Highway toggles the include guard.
#include <algorithm>
#include <utility>

#include "hwy/highway.h"

#if defined(VITRAIL_KERNELS_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_VECTOR_MATH_INL_H_
#undef VITRAIL_KERNELS_VECTOR_MATH_INL_H_
#else
#define VITRAIL_KERNELS_VECTOR_MATH_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// terms[0] + terms[1] x + terms[2] x² + … by Estrin's scheme, which has half the latency of Horner's.
template <class D, class V, size_t n>
HWY_INLINE V estrin(D d, V x, const V (&terms)[n]) {
  if constexpr (n == 1) {
    return terms[0];
  } else {
    return [&]<size_t... i>(std::index_sequence<i...>) VITRAIL_INLINE_ATTR {
      const V pairs[] = {
          (2 * i + 1 < n ? hn::MulAdd(terms[std::min(2 * i + 1, n - 1)], x, terms[2 * i]) : terms[2 * i])...};
      return estrin(d, hn::Mul(x, x), pairs);
    }
    (std::make_index_sequence<(n + 1) / 2>());
  }
}

// The polynomial in x with these coefficients, that of x⁰ first.
template <class D, class V, class... Coefficients>
HWY_INLINE V polynomial(D d, V x, Coefficients... coefficients) {
  const V terms[] = {hn::Set(d, coefficients)...};
  return estrin(d, x, terms);
}

// Returns the integer n nearest to x, and 2^n in *power, for −126 ≤ n and x ≤ 128; 2^128 is ∞.  After 1.5 · 2^23 is
// added, the low bits of the sum are n; shifted by 23 they are the exponent of 2^n.
template <class D, class V>
HWY_INLINE V nearest_integer(D d, V x, V* power) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, 12582912.0f), shifted = hn::Add(x, magic);
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  *power = hn::BitCast(d, hn::Add(exponent, hn::BitCast(di, hn::Set(d, 1.0f))));
  return hn::Sub(shifted, magic);
}

// e^x with an error of at most 2 ulp.  0 for x < −86.6, where e^x < 2.5e−38; ∞ for x > 88.37.
template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  // x = n ln 2 + r with |r| ≤ ln 2 / 2.  ln 2 is split in two: n times the first part is exact without FMA.
  V power;
  const V n = nearest_integer(d, hn::Min(hn::Mul(x, hn::Set(d, 1.44269504f)), hn::Set(d, 128.0f)), &power);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693145752f), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6f), r);
  const V m = polynomial(d, r, 1.0f, 1.0f, 0.49999994f, 0.166664317f, 0.0416680016f, 0.00837416295f, 0.00138436444f);
  // Comparisons with NaN are false: it passes through as r and m.
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -86.6f)), hn::Mul(m, power));
}

// 2^x for −125 ≤ x ≤ 1, from `fraction_exp2`, which computes 2^r for |r| ≤ 1/2; the relative error is that of
// `fraction_exp2`.  With AVX-512, whose instructions split x and scale by 2^n, for all x ≤ 1.
template <class D, class V, class F>
HWY_INLINE V exp2_by(D d, V x, const F& fraction_exp2) {
#if HWY_TARGET == HWY_AVX3
  const V r{_mm512_reduce_ps(x.raw, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};  // 0 for ±∞
  return V{_mm512_scalef_ps(fraction_exp2(r).raw, hn::Sub(x, r).raw)};
#else
  V power;
  const V r = hn::Sub(x, nearest_integer(d, x, &power));
  return hn::Mul(fraction_exp2(r), power);
#endif
}

// Relative error 1.5e-7.
template <class D, class V>
HWY_INLINE V exp2(D d, V x) {
  return exp2_by(d, x, [d](V r) VITRAIL_INLINE_ATTR {
    return polynomial(d, r, 1.0f, 0.693147004f, 0.240222424f, 0.0555073395f, 0.00967152324f, 0.00132647133f);
  });
}

// Relative error 7.5e-5: a fiftieth of the rounding to bf16.
template <class D, class V>
HWY_INLINE V coarse_exp2(D d, V x) {
  return exp2_by(d, x, [d](V r) VITRAIL_INLINE_ATTR {
    const V m = hn::MulAdd(hn::Set(d, 0.05517166f), r, hn::Set(d, 0.24261112f));
    return hn::MulAdd(hn::MulAdd(m, r, hn::Set(d, 0.69326099f)), r, hn::Set(d, 0.99992807f));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
