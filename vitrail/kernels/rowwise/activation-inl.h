// SPDX-License-Identifier: Apache-2.0
// The activations and their derivatives on a vector of floats.  NaN gives NaN.  The coefficients are minimax fits
// (Lawson's iteration on Chebyshev nodes) of GELU's absolute error.
// Included once per target: Highway toggles the include guard.
#include <type_traits>

#include "hwy/highway.h"
#include "vitrail/kernels/isa/vector_math-inl.h"
#include "vitrail/kernels/rowwise/activation.h"

#if defined(VITRAIL_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_ACTIVATION_INL_H_
#undef VITRAIL_KERNELS_ACTIVATION_INL_H_
#else
#define VITRAIL_KERNELS_ACTIVATION_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// gelu_tanh: x (1 + tanh(kSqrt2OverPi (x + kTanhCubic x³))) / 2.  quick_gelu: x σ(kQuickGeluFactor x).
constexpr float kSqrt2OverPi = 0.797884561f, kTanhCubic = 0.044715f, kQuickGeluFactor = 1.702f;

// Φ(−u) for 0 ≤ u ≤ 8.
template <class D, class V>
HWY_INLINE V gelu_tail(D d, V u) {
  return exp2(d, polynomial(d, u, -0.999998868f, -1.15112329f, -0.459115446f, -0.0527141988f, 0.00733338343f,
                            -0.000323341752f, -0.000114462804f, 2.50833273e-5f, -1.690403e-6f));
}

// x·Φ(x) = max(x, 0) − |x|·Φ(−|x|), where log2 Φ(−u) is a polynomial in u.  Unlike 1 + erf(x), this has no
// cancellation: the absolute error is below 4e-8 + half an ulp of the result.  u is limited to 8, where the second term
// is 1e-15, so that +∞ gives +∞.
template <class D, class V>
HWY_INLINE V gelu(D d, V x) {
  const V half = hn::Mul(hn::Set(d, 0.5f), x);
  const V u = hn::Min(hn::Abs(x), hn::Set(d, 8.0f));
  return hn::NegMulAdd(u, gelu_tail(d, u), hn::Add(half, hn::Abs(half)));  // half + |half| keeps NaN, as Max would not
}

// GELU for a result that is rounded to bf16 or int8 next: relative error 2.3e-4, a ninth of that rounding, and absolute
// error 2e-6.
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
HWY_INLINE V gelu_derivative(D d, V x) {
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

// coarse: the result is rounded to bf16 or int8 next.
template <Activation kind, bool coarse = false, class D, class V>
HWY_INLINE V activate(D d, V x) {
  if constexpr (kind == Activation::gelu) return coarse ? coarse_gelu(d, x) : gelu(d, x);
  if constexpr (kind == Activation::gelu_tanh) {
    // (1 + tanh u) / 2 = σ(2u) with u = √(2/π) (x + 0.044715 x³)
    const V inner = hn::MulAdd(hn::Mul(hn::Set(d, -2 * kSqrt2OverPi * kTanhCubic), hn::Mul(x, x)), x,
                               hn::Mul(hn::Set(d, -2 * kSqrt2OverPi), x));
    return times_sigmoid(d, x, inner);
  }
  if constexpr (kind == Activation::quick_gelu) return times_sigmoid(d, x, hn::Mul(x, hn::Set(d, -kQuickGeluFactor)));
  if constexpr (kind == Activation::relu) return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  if constexpr (kind == Activation::silu) return times_sigmoid(d, x, hn::Neg(x));
  if constexpr (kind == Activation::tanh) {  // 2σ(2x) − 1, whose absolute error near zero is an ulp of 1
    const V twice = times_sigmoid(d, hn::Set(d, 2.0f), hn::Mul(x, hn::Set(d, -2.0f)));
    return hn::Sub(twice, hn::Set(d, 1.0f));
  }
  return x;
}

// The derivative of activate<kind> at x.
template <Activation kind, class D, class V>
HWY_INLINE V activation_derivative(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  auto sigmoid = [&](V z) VITRAIL_INLINE_ATTR { return times_sigmoid(d, one, hn::Neg(z)); };
  if constexpr (kind == Activation::gelu) return gelu_derivative(d, x);
  if constexpr (kind == Activation::gelu_tanh) {
    const V square = hn::Mul(x, x);
    const V s = sigmoid(hn::Mul(hn::Mul(x, hn::Set(d, 2 * kSqrt2OverPi)),
                                hn::MulAdd(hn::Set(d, kTanhCubic), square, one)));  // (1 + tanh u) / 2
    const V inner_derivative =
        hn::MulAdd(hn::Set(d, 2 * kSqrt2OverPi * 3 * kTanhCubic), square, hn::Set(d, 2 * kSqrt2OverPi));
    return hn::MulAdd(hn::Mul(x, inner_derivative), hn::Mul(s, hn::Sub(one, s)), s);
  }
  if constexpr (kind == Activation::quick_gelu) {
    const V factor = hn::Set(d, kQuickGeluFactor), s = sigmoid(hn::Mul(factor, x));
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

// Calls f(std::integral_constant<Activation, kind>()): the activation as a compile-time constant.
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
