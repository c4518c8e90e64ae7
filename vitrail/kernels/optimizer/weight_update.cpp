// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/optimizer/weight_update.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/optimizer/weight_update.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using Wide = hn::RepartitionToWide<D>;  // doubles

HWY_INLINE V set(double value) { return hn::Set(D(), static_cast<float>(value)); }

// Accumulates Σx² in f64.
struct SumOfSquares {
  HWY_INLINE SumOfSquares() : low(hn::Zero(Wide())), high(hn::Zero(Wide())) {}
  hn::Vec<Wide> low, high;
  HWY_INLINE void add(V x) {
    const hn::Half<D> half;
    const auto a = hn::PromoteTo(Wide(), hn::LowerHalf(half, x));
    low = hn::MulAdd(a, a, low);
#if HWY_TARGET != HWY_SCALAR  // one lane has no upper half
    const auto b = hn::PromoteTo(Wide(), hn::UpperHalf(half, x));
    high = hn::MulAdd(b, b, high);
#endif
  }
  HWY_INLINE double sum() const { return hn::GetLane(hn::SumOfLanes(Wide(), hn::Add(low, high))); }
};

// torch.lerp: a + weight (b − a), computed from the end that is nearer, so that weight 1 gives b itself.
// `complement` = 1 − weight; for a moving average with decay β, weight = 1 − β and complement = β.
struct Lerp {
  HWY_INLINE Lerp(double weight, double complement)
      : weight_(set(weight)), complement_(set(complement)), from_a_(weight < 0.5) {}
  HWY_INLINE V operator()(V a, V b) const {
    return from_a_ ? hn::MulAdd(weight_, hn::Sub(b, a), a) : hn::NegMulAdd(hn::Sub(b, a), complement_, b);
  }

 private:
  V weight_, complement_;
  bool from_a_;
};

// The constants of an AdamStep, and the parts that AdamW and LAMB share.
struct AdamRule {
  explicit AdamRule(const AdamStep& s)
      : gradient_scale(set(s.gradient_scale)),
        first_moment(1 - s.beta1, s.beta1),
        beta2(set(s.beta2)),
        one_minus_beta2(set(1 - s.beta2)),
        bias_correction1(set(s.bias_correction1)),
        sqrt_bias_correction2(set(s.sqrt_bias_correction2)),
        eps(set(s.eps)),
        weight_decay(set(s.weight_decay)) {}

  HWY_INLINE V second_moment(V v, V g) const {
    return hn::Add(hn::Mul(v, beta2), hn::Mul(hn::Mul(one_minus_beta2, g), g));
  }
  HWY_INLINE V denominator(V v) const { return hn::Add(hn::Div(hn::Sqrt(v), sqrt_bias_correction2), eps); }
  HWY_INLINE V lamb_update(V w, V m, V v) const {
    return hn::MulAdd(weight_decay, w, hn::Div(hn::Div(m, bias_correction1), denominator(v)));
  }

  V gradient_scale;
  Lerp first_moment;
  V beta2, one_minus_beta2, bias_correction1, sqrt_bias_correction2, eps, weight_decay;
};

void adamw_span(float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step) {
  const AdamRule rule(step);
  const V keep = set(1 - step.rate * step.weight_decay), rate = set(step.rate / step.bias_correction1);
  for_each_vector(D(), n, [&](int64_t i, auto memory) HWY_ATTR {
    const V gi = hn::Mul(memory.load(g + i), rule.gradient_scale);
    const V mi = rule.first_moment(memory.load(m + i), gi), vi = rule.second_moment(memory.load(v + i), gi);
    const V change = hn::Div(hn::Mul(rate, mi), rule.denominator(vi));
    memory.store(mi, m + i);
    memory.store(vi, v + i);
    memory.store(hn::Sub(hn::Mul(memory.load(w + i), keep), change), w + i);
  });
}

LambSquares lamb_moments_span(const float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step) {
  const AdamRule rule(step);
  SumOfSquares weight, update;
  for_each_vector(D(), n, [&](int64_t i, auto memory) HWY_ATTR {
    const V gi = hn::Mul(memory.load(g + i), rule.gradient_scale), wi = memory.load(w + i);
    const V mi = rule.first_moment(memory.load(m + i), gi), vi = rule.second_moment(memory.load(v + i), gi);
    memory.store(mi, m + i);
    memory.store(vi, v + i);
    weight.add(wi);
    update.add(rule.lamb_update(wi, mi, vi));  // 0 / (0 + ε) beyond the end: optim checks that ε > 0
  });
  return {weight.sum(), update.sum()};
}

void lamb_apply_span(float* w, const float* m, const float* v, int64_t n, double ratio, const AdamStep& step) {
  const AdamRule rule(step);
  const V rate = set(step.rate), factor = set(ratio);
  for_each_vector(D(), n, [&](int64_t i, auto memory) HWY_ATTR {
    const V wi = memory.load(w + i);
    const V update = hn::Mul(factor, rule.lamb_update(wi, memory.load(m + i), memory.load(v + i)));
    memory.store(hn::NegMulAdd(rate, update, wi), w + i);
  });
}

void sgd_span(float* w, const float* g, float* b, int64_t n, const SgdStep& step) {
  const V scale = set(step.gradient_scale), rate = set(step.rate), decay = set(step.weight_decay);
  const V momentum = set(step.momentum);
  for_each_vector(D(), n, [&](int64_t i, auto memory) HWY_ATTR {
    const V wi = memory.load(w + i);
    V d = hn::MulAdd(decay, wi, hn::Mul(scale, memory.load(g + i)));
    if (b) {
      const V bi = hn::Add(hn::Mul(momentum, memory.load(b + i)), d);
      memory.store(bi, b + i);
      d = step.nesterov ? hn::MulAdd(momentum, bi, d) : bi;
    }
    memory.store(hn::NegMulAdd(rate, d, wi), w + i);
  });
}

void lion_span(float* w, const float* g, float* m, int64_t n, const LionStep& step) {
  const V scale = set(step.gradient_scale), rate = set(step.rate), keep = set(1 - step.rate * step.weight_decay);
  const V zero = hn::Zero(D()), one = set(1);
  const Lerp direction_of(1 - step.beta1, step.beta1), moment_of(1 - step.beta2, step.beta2);
  for_each_vector(D(), n, [&](int64_t i, auto memory) HWY_ATTR {
    const V gi = hn::Mul(scale, memory.load(g + i)), mi = memory.load(m + i);
    const V direction = direction_of(mi, gi);
    // sign(direction); 0 and NaN stay
    const V up = hn::IfThenElse(hn::Gt(direction, zero), one, direction);
    const V sign = hn::IfThenElse(hn::Lt(direction, zero), hn::Neg(one), up);
    memory.store(hn::NegMulAdd(rate, sign, hn::Mul(memory.load(w + i), keep)), w + i);
    memory.store(moment_of(mi, gi), m + i);
  });
}

void lerp_span(float* a, const float* b, int64_t n, double weight) {
  const Lerp lerp(weight, 1 - weight);
  for_each_vector(D(), n, [&](int64_t i, auto memory) HWY_ATTR {
    memory.store(lerp(memory.load(a + i), memory.load(b + i)), a + i);
  });
}

void scale_span(float* x, int64_t n, double factor) {
  const V f = set(factor);
  for_each_vector(D(), n,
                  [&](int64_t i, auto memory) HWY_ATTR { memory.store(hn::Mul(f, memory.load(x + i)), x + i); });
}

double sum_of_squares_span(const float* x, int64_t n) {
  SumOfSquares squares;
  for_each_vector(D(), n, [&](int64_t i, auto memory) HWY_ATTR { squares.add(memory.load(x + i)); });
  return squares.sum();
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/kernels/optimizer/scalar_optimizer_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(adamw_span, scalar::adamw);
VITRAIL_EXPORT(lamb_moments_span, scalar::lamb_moments);
VITRAIL_EXPORT(lamb_apply_span, scalar::lamb_apply);
VITRAIL_EXPORT(sgd_span, scalar::sgd);
VITRAIL_EXPORT(lion_span, scalar::lion);
VITRAIL_EXPORT(lerp_span, scalar::lerp);
VITRAIL_EXPORT(scale_span, scalar::scale);
VITRAIL_EXPORT(sum_of_squares_span, scalar::sum_of_squares);

}  // namespace

void adamw(float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step) {
  VITRAIL_DISPATCH(adamw_span)(w, g, m, v, n, step);
}
LambSquares lamb_moments(const float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step) {
  return VITRAIL_DISPATCH(lamb_moments_span)(w, g, m, v, n, step);
}
void lamb_apply(float* w, const float* m, const float* v, int64_t n, double ratio, const AdamStep& step) {
  VITRAIL_DISPATCH(lamb_apply_span)(w, m, v, n, ratio, step);
}
void sgd(float* w, const float* g, float* b, int64_t n, const SgdStep& step) {
  VITRAIL_DISPATCH(sgd_span)(w, g, b, n, step);
}
void lion(float* w, const float* g, float* m, int64_t n, const LionStep& step) {
  VITRAIL_DISPATCH(lion_span)(w, g, m, n, step);
}
void lerp(float* a, const float* b, int64_t n, double weight) { VITRAIL_DISPATCH(lerp_span)(a, b, n, weight); }
void scale(float* x, int64_t n, double factor) { VITRAIL_DISPATCH(scale_span)(x, n, factor); }
double sum_of_squares(const float* x, int64_t n) { return VITRAIL_DISPATCH(sum_of_squares_span)(x, n); }

void adamw(double* w, const double* g, double* m, double* v, int64_t n, const AdamStep& step) {
  scalar::adamw(w, g, m, v, n, step);
}
LambSquares lamb_moments(const double* w, const double* g, double* m, double* v, int64_t n, const AdamStep& step) {
  return scalar::lamb_moments(w, g, m, v, n, step);
}
void lamb_apply(double* w, const double* m, const double* v, int64_t n, double ratio, const AdamStep& step) {
  scalar::lamb_apply(w, m, v, n, ratio, step);
}
void sgd(double* w, const double* g, double* b, int64_t n, const SgdStep& step) { scalar::sgd(w, g, b, n, step); }
void lion(double* w, const double* g, double* m, int64_t n, const LionStep& step) { scalar::lion(w, g, m, n, step); }
void lerp(double* a, const double* b, int64_t n, double weight) { scalar::lerp(a, b, n, weight); }
void scale(double* x, int64_t n, double factor) { scalar::scale(x, n, factor); }
double sum_of_squares(const double* x, int64_t n) { return scalar::sum_of_squares(x, n); }

}  // namespace vitrail::kernels
#endif
