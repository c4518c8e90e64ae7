// SPDX-License-Identifier: Apache-2.0
// exp, 2^x and the activations on a vector of floats.  NaN gives NaN; coefficients are minimax fits made for this file
// (Lawson's iteration on Chebyshev nodes, relative error for the exponentials, absolute error of GELU for its tail,
// what bf16 notices for the coarse ones).
// Included once for each target (no #pragma once: Highway toggles the guard).
#include <algorithm>
#include <utility>

#include "hwy/highway.h"
#include "vitrail/kernels/rowwise/activation.h"

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

// c0 + c1 x + c2 x² …, the terms joined in pairs, the pairs in pairs and so on (Estrin): half the latency of Horner's
// rule, which counts while few vectors are in flight.
template <class D, class V, size_t n>
HWY_INLINE V join_pairs(D d, V x, const V (&terms)[n]) {
  if constexpr (n == 1) {
    return terms[0];
  } else {
    return [&]<size_t... i>(std::index_sequence<i...>) HWY_ATTR {
      const V joined[] = {
          (2 * i + 1 < n ? hn::MulAdd(terms[std::min(2 * i + 1, n - 1)], x, terms[2 * i]) : terms[2 * i])...};
      return join_pairs(d, hn::Mul(x, x), joined);
    }
    (std::make_index_sequence<(n + 1) / 2>());
  }
}
template <class D, class V, class... Coefficients>
HWY_INLINE V polynomial(D d, V x, Coefficients... c) {
  const V terms[] = {hn::Set(d, c)...};
  return join_pairs(d, x, terms);
}

// Splits x ≤ 128 into a nearby integer n and 2^n, −126 ≤ n.  Adding 1.5 · 2^23 leaves the integer in the sum's low
// bits, which become the exponent.  n = 128 gives 2^n = ∞.
template <class D, class V>
HWY_INLINE V nearest_integer(D d, V x, V* power) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, 12582912.0f), shifted = hn::Add(x, magic);
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  *power = hn::BitCast(d, hn::Add(exponent, hn::BitCast(di, hn::Set(d, 1.0f))));
  return hn::Sub(shifted, magic);
}

// e^x, at most 2 ulp off.  Below −86.6 (e^x < 2.5e−38) the result is 0; above 88.37 it is infinite.
template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  // x = n ln2 + r, |r| ≤ ln2 / 2; ln2 in two parts, the first short enough that n times it is exact without FMA.
  V power;
  const V n = nearest_integer(d, hn::Min(hn::Mul(x, hn::Set(d, 1.44269504f)), hn::Set(d, 128.0f)), &power);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693145752f), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6f), r);
  const V m = polynomial(d, r, 1.0f, 1.0f, 0.49999994f, 0.166664317f, 0.0416680016f, 0.00837416295f, 0.00138436444f);
  // Comparisons with NaN are false: it passes through as r and m.
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -86.6f)), hn::Mul(m, power));
}

// 2^x for −125 ≤ x ≤ 1, of the relative error that `of_part` has: 2^r for |r| ≤ 1/2.  With AVX-512, where two
// instructions take x apart and put the power on (2.9 → 2.3 ns a vector on Zen 4, a cut at −125 included), for all x
// ≤ 1.
template <class D, class V, class F>
HWY_INLINE V exp2_by(D d, V x, const F& of_part) {
#if HWY_TARGET == HWY_AVX3
  const V r{_mm512_reduce_ps(x.raw, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};  // 0 of ±∞
  return V{_mm512_scalef_ps(of_part(r).raw, hn::Sub(x, r).raw)};
#else
  V power;
  const V r = hn::Sub(x, nearest_integer(d, x, &power));
  return hn::Mul(of_part(r), power);
#endif
}

// Relative error 1.5e-7.
template <class D, class V>
HWY_INLINE V exp2(D d, V x) {
  return exp2_by(d, x, [d](V r) HWY_ATTR {
    return polynomial(d, r, 1.0f, 0.693147004f, 0.240222424f, 0.0555073395f, 0.00967152324f, 0.00132647133f);
  });
}

// Relative error 7.5e-5, a fiftieth of what rounding to bf16 may cost.
template <class D, class V>
HWY_INLINE V coarse_exp2(D d, V x) {
  return exp2_by(d, x, [d](V r) HWY_ATTR {
    const V m = hn::MulAdd(hn::Set(d, 0.05517166f), r, hn::Set(d, 0.24261112f));
    return hn::MulAdd(hn::MulAdd(m, r, hn::Set(d, 0.69326099f)), r, hn::Set(d, 0.99992807f));
  });
}

// Φ(−u) for 0 ≤ u ≤ 8.
template <class D, class V>
HWY_INLINE V gelu_tail(D d, V u) {
  return exp2(d, polynomial(d, u, -0.999998868f, -1.15112329f, -0.459115446f, -0.0527141988f, 0.00733338343f,
                            -0.000323341752f, -0.000114462804f, 2.50833273e-5f, -1.690403e-6f));
}

// x·Φ(x) = max(x, 0) − |x|·Φ(−|x|), where log2 Φ(−u) is a polynomial in u.  Nothing cancels, as it does in 1 + erf:
// absolute error below 4e-8 + half an ulp of the result.  u is cut at 8, where the second term is 1e-15, so that +∞
// gives +∞.
template <class D, class V>
HWY_INLINE V gelu(D d, V x) {
  const V half = hn::Mul(hn::Set(d, 0.5f), x);
  const V u = hn::Min(hn::Abs(x), hn::Set(d, 8.0f));
  return hn::NegMulAdd(u, gelu_tail(d, u), hn::Add(half, hn::Abs(half)));  // half + |half| keeps NaN, as Max would not
}

// The same for what is rounded to bf16 or 8 bits next: relative error 2.3e-4, a ninth of what that may cost, and 2e-6.
template <class D, class V>
HWY_INLINE V coarse_gelu(D d, V x) {
  const V half = hn::Mul(hn::Set(d, 0.5f), x);
  const V u = hn::Min(hn::Abs(x), hn::Set(d, 6.0f));  // 6 Φ(−6) = 6e-9
  V log = hn::MulAdd(hn::Set(d, 0.003337714f), u, hn::Set(d, -0.041451607f));
  log = hn::MulAdd(hn::MulAdd(log, u, hn::Set(d, -0.47187147f)), u, hn::Set(d, -1.1457597f));
  const V tail = coarse_exp2(d, hn::MulAdd(log, u, hn::Set(d, -1.0005084f)));
  return hn::NegMulAdd(u, tail, hn::Add(half, hn::Abs(half)));
}

// The derivative of gelu: Φ(x) + x φ(x).  Absolute error below 2e-7.
template <class D, class V>
HWY_INLINE V gelu_slope(D d, V x) {
  const V u = hn::Min(hn::Abs(x), hn::Set(d, 16.0f));
  const V tail = gelu_tail(d, hn::Min(u, hn::Set(d, 8.0f)));  // Φ(−u)
  const V cdf = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(hn::Set(d, 1.0f), tail));
  const V density = hn::Mul(exp(d, hn::Mul(hn::Set(d, -0.5f), hn::Mul(u, u))), hn::Set(d, 0.398942280f));
  return hn::MulAdd(x, density, cdf);
}

// x / (1 + e^(−z))
template <class D, class V>
HWY_INLINE V times_sigmoid(D d, V x, V minus_z) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), exp(d, minus_z)));
}

// coarse: what is rounded to bf16 or 8 bits next.
template <Activation kind, bool coarse = false, class D, class V>
HWY_INLINE V activate(D d, V x) {
  if constexpr (kind == Activation::gelu) return coarse ? coarse_gelu(d, x) : gelu(d, x);
  if constexpr (kind == Activation::gelu_tanh) {
    // (1 + tanh u) / 2 = σ(2u), u = √(2/π) (x + 0.044715 x³)
    const V inner = hn::MulAdd(hn::Mul(hn::Set(d, -2 * 0.797884561f * 0.044715f), hn::Mul(x, x)), x,
                               hn::Mul(hn::Set(d, -2 * 0.797884561f), x));
    return times_sigmoid(d, x, inner);
  }
  if constexpr (kind == Activation::quick_gelu) return times_sigmoid(d, x, hn::Mul(x, hn::Set(d, -1.702f)));
  if constexpr (kind == Activation::relu) return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  if constexpr (kind == Activation::silu) return times_sigmoid(d, x, hn::Neg(x));
  if constexpr (kind == Activation::tanh) {  // 2σ(2x) − 1: an ulp of 1 near zero, where tanh itself is small
    const V twice = times_sigmoid(d, hn::Set(d, 2.0f), hn::Mul(x, hn::Set(d, -2.0f)));
    return hn::Sub(twice, hn::Set(d, 1.0f));
  }
  return x;
}

// The derivative of activate<kind> at x.
template <Activation kind, class D, class V>
HWY_INLINE V slope(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  auto sigmoid = [&](V z) HWY_ATTR { return times_sigmoid(d, one, hn::Neg(z)); };
  if constexpr (kind == Activation::gelu) return gelu_slope(d, x);
  if constexpr (kind == Activation::gelu_tanh) {
    const V square = hn::Mul(x, x);
    const V s = sigmoid(hn::Mul(hn::Mul(x, hn::Set(d, 2 * 0.797884561f)),
                                hn::MulAdd(hn::Set(d, 0.044715f), square, one)));  // (1 + tanh u) / 2
    const V inner_slope =
        hn::MulAdd(hn::Set(d, 2 * 0.797884561f * 3 * 0.044715f), square, hn::Set(d, 2 * 0.797884561f));
    return hn::MulAdd(hn::Mul(x, inner_slope), hn::Mul(s, hn::Sub(one, s)), s);
  }
  if constexpr (kind == Activation::quick_gelu) {
    const V factor = hn::Set(d, 1.702f), s = sigmoid(hn::Mul(factor, x));
    return hn::MulAdd(hn::Mul(hn::Mul(factor, x), s), hn::Sub(one, s), s);
  }
  if constexpr (kind == Activation::relu) return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), one);
  if constexpr (kind == Activation::silu) {
    const V s = sigmoid(x);
    return hn::MulAdd(hn::Mul(x, s), hn::Sub(one, s), s);
  }
  if constexpr (kind == Activation::tanh) {
    const V t = activate<Activation::tanh>(d, x);
    return hn::NegMulAdd(t, t, one);
  }
  return one;
}

// Calls f with the activation as a compile-time constant: f(std::integral_constant<Activation, …>).
template <class F>
HWY_INLINE void with_activation(Activation kind, F&& f) {
  switch (kind) {
    case Activation::none:
      return f(std::integral_constant<Activation, Activation::none>());
    case Activation::gelu:
      return f(std::integral_constant<Activation, Activation::gelu>());
    case Activation::gelu_tanh:
      return f(std::integral_constant<Activation, Activation::gelu_tanh>());
    case Activation::quick_gelu:
      return f(std::integral_constant<Activation, Activation::quick_gelu>());
    case Activation::relu:
      return f(std::integral_constant<Activation, Activation::relu>());
    case Activation::silu:
      return f(std::integral_constant<Activation, Activation::silu>());
    case Activation::tanh:
      return f(std::integral_constant<Activation, Activation::tanh>());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
