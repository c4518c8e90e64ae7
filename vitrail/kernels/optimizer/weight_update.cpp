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

// A whole vector in memory, or the first `left` elements of one.
struct Whole {
  HWY_INLINE V load(const float* p) const { return hn::LoadU(D(), p); }
  HWY_INLINE void store(V v, float* p) const { hn::StoreU(v, D(), p); }
};
struct First {
  int64_t left;
  HWY_INLINE V load(const float* p) const { return load_first(D(), p, left); }
  HWY_INLINE void store(V v, float* p) const { store_first(D(), v, p, left); }
};

// body(i, memory) for each vector of [0, n): the last, incomplete one comes with a memory that stops at n and reads 0.
template <class Body>
HWY_INLINE void for_each_vector(int64_t n, Body&& body) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, Whole());
  if (i < n) body(i, First{n - i});
}

// A running Σx² in doubles.
struct Squares {
  HWY_INLINE Squares() : low(hn::Zero(Wide())), high(hn::Zero(Wide())) {}
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

// a + weight (b − a) for a weight below a half.
HWY_INLINE V lerp_near(V a, V b, V weight) { return hn::MulAdd(weight, hn::Sub(b, a), a); }

struct AdamConstants {
  explicit AdamConstants(const AdamStep& s)
      : scale(set(s.gradient_scale)),
        beta1(set(s.beta1)),
        rest1(set(1 - s.beta1)),
        beta2(set(s.beta2)),
        rest2(set(1 - s.beta2)),
        bias1(set(s.bias1)),
        root_bias2(set(s.root_bias2)),
        eps(set(s.eps)),
        decay(set(s.weight_decay)),
        near_old(s.beta1 > 0.5) {}
  V scale, beta1, rest1, beta2, rest2, bias1, root_bias2, eps, decay;
  bool near_old;

  HWY_INLINE V first_moment(V m, V g) const {
    return near_old ? lerp_near(m, g, rest1) : hn::NegMulAdd(hn::Sub(g, m), beta1, g);
  }
  HWY_INLINE V second_moment(V v, V g) const { return hn::Add(hn::Mul(v, beta2), hn::Mul(hn::Mul(rest2, g), g)); }
  HWY_INLINE V denominator(V v) const { return hn::Add(hn::Div(hn::Sqrt(v), root_bias2), eps); }
  HWY_INLINE V lamb_update(V w, V m, V v) const {
    return hn::MulAdd(decay, w, hn::Div(hn::Div(m, bias1), denominator(v)));
  }
};

void adamw_span(float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step) {
  const AdamConstants c(step);
  const V keep = set(1 - step.rate * step.weight_decay), rate = set(step.rate / step.bias1);
  for_each_vector(n, [&](int64_t i, auto memory) HWY_ATTR {
    const V gi = hn::Mul(memory.load(g + i), c.scale);
    const V mi = c.first_moment(memory.load(m + i), gi), vi = c.second_moment(memory.load(v + i), gi);
    const V change = hn::Div(hn::Mul(rate, mi), c.denominator(vi));
    memory.store(mi, m + i);
    memory.store(vi, v + i);
    memory.store(hn::Sub(hn::Mul(memory.load(w + i), keep), change), w + i);
  });
}

LambSquares lamb_moments_span(const float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step) {
  const AdamConstants c(step);
  Squares weight, update;
  for_each_vector(n, [&](int64_t i, auto memory) HWY_ATTR {
    const V gi = hn::Mul(memory.load(g + i), c.scale), wi = memory.load(w + i);
    const V mi = c.first_moment(memory.load(m + i), gi), vi = c.second_moment(memory.load(v + i), gi);
    memory.store(mi, m + i);
    memory.store(vi, v + i);
    weight.add(wi);
    update.add(c.lamb_update(wi, mi, vi));  // beyond the end 0 / (0 + ε): see the check of ε in optim
  });
  return {weight.sum(), update.sum()};
}

void lamb_apply_span(float* w, const float* m, const float* v, int64_t n, double ratio, const AdamStep& step) {
  const AdamConstants c(step);
  const V rate = set(step.rate), factor = set(ratio);
  for_each_vector(n, [&](int64_t i, auto memory) HWY_ATTR {
    const V wi = memory.load(w + i);
    const V update = hn::Mul(factor, c.lamb_update(wi, memory.load(m + i), memory.load(v + i)));
    memory.store(hn::NegMulAdd(rate, update, wi), w + i);
  });
}

void sgd_span(float* w, const float* g, float* b, int64_t n, const SgdStep& step) {
  const V scale = set(step.gradient_scale), rate = set(step.rate), decay = set(step.weight_decay);
  const V momentum = set(step.momentum);
  for_each_vector(n, [&](int64_t i, auto memory) HWY_ATTR {
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
  const auto mixed = [](V from, V to, double beta) HWY_ATTR {
    return beta > 0.5 ? lerp_near(from, to, set(1 - beta)) : hn::NegMulAdd(hn::Sub(to, from), set(beta), to);
  };
  for_each_vector(n, [&](int64_t i, auto memory) HWY_ATTR {
    const V gi = hn::Mul(scale, memory.load(g + i)), mi = memory.load(m + i);
    const V direction = mixed(mi, gi, step.beta1);
    // ±1 by its sign; 0 and NaN stay.
    const V up = hn::IfThenElse(hn::Gt(direction, zero), one, direction);
    const V sign = hn::IfThenElse(hn::Lt(direction, zero), hn::Neg(one), up);
    memory.store(hn::NegMulAdd(rate, sign, hn::Mul(memory.load(w + i), keep)), w + i);
    memory.store(mixed(mi, gi, step.beta2), m + i);
  });
}

void lerp_span(float* a, const float* b, int64_t n, double weight) {
  const V near_a = set(weight), near_b = set(1 - weight);
  for_each_vector(n, [&](int64_t i, auto memory) HWY_ATTR {
    const V ai = memory.load(a + i), bi = memory.load(b + i);
    memory.store(weight < 0.5 ? lerp_near(ai, bi, near_a) : hn::NegMulAdd(hn::Sub(bi, ai), near_b, bi), a + i);
  });
}

void scale_span(float* x, int64_t n, double factor) {
  const V f = set(factor);
  for_each_vector(n, [&](int64_t i, auto memory) HWY_ATTR { memory.store(hn::Mul(f, memory.load(x + i)), x + i); });
}

double sum_of_squares_span(const float* x, int64_t n) {
  Squares squares;
  for_each_vector(n, [&](int64_t i, auto memory) HWY_ATTR { squares.add(memory.load(x + i)); });
  return squares.sum();
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/kernels/optimizer/scalar_update_internal.h"

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
