// SPDX-License-Identifier: Apache-2.0
// The passes of a softmax over one row, shared by softmax.cpp and attention.
// Included once for each target (no #pragma once: Highway toggles the guard).
#include <limits>

#include "hwy/highway.h"
#include "vitrail/kernels/isa/vector_math-inl.h"
#include "vitrail/kernels/isa/vector_memory-inl.h"

#if defined(VITRAIL_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_SOFTMAX_INL_H_
#undef VITRAIL_KERNELS_SOFTMAX_INL_H_
#else
#define VITRAIL_KERNELS_SOFTMAX_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// The largest element; NaN may be passed over, exp_row() finds it.
HWY_INLINE float row_max(const float* x, int64_t cols) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto m0 = lowest, m1 = lowest;
  int64_t c = 0;
  for (; c + 2 * lanes <= cols; c += 2 * lanes) {
    m0 = hn::Max(m0, hn::LoadU(d, x + c));
    m1 = hn::Max(m1, hn::LoadU(d, x + c + lanes));
  }
  for (; c < cols; c += lanes) {
    const int64_t left = cols - c;
    if (left >= lanes) {
      m0 = hn::Max(m0, hn::LoadU(d, x + c));
    } else {
      const auto inside = hn::FirstN(d, static_cast<size_t>(left));
      m1 = hn::Max(m1, hn::IfThenElse(inside, load_first(d, x + c, left), lowest));
    }
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(m0, m1)));
}

// e^x for x ≤ 0; 0 below −86.6.  Relative error 1.5e-7 + |x| / 2^23: what is small is less exact, by as much as it
// hardly counts in a sum that begins with 1.
template <class D, class V>
HWY_INLINE V exp_of_difference(D d, V x) {
  const V power = hn::Mul(x, hn::Set(d, 1.44269504f));
  return hn::IfThenZeroElse(hn::Lt(power, hn::Set(d, -125.0f)), exp2(d, power));
}

// y = e^(x − most), and their sum, which is NaN when an element was.  A row of −∞ alone gives zeros and the sum 0:
// there 0 stands in for most, as −∞ − (−∞) would be NaN.  y may be x.
HWY_INLINE float exp_row(const float* x, float most, float* y, int64_t cols) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, most == -std::numeric_limits<float>::infinity() ? 0.0f : most);
  auto s0 = hn::Zero(d), s1 = s0;
  int64_t c = 0;
  for (; c + 2 * lanes <= cols; c += 2 * lanes) {
    const auto e0 = exp_of_difference(d, hn::Sub(hn::LoadU(d, x + c), shift));
    const auto e1 = exp_of_difference(d, hn::Sub(hn::LoadU(d, x + c + lanes), shift));
    hn::StoreU(e0, d, y + c);
    hn::StoreU(e1, d, y + c + lanes);
    s0 = hn::Add(s0, e0);
    s1 = hn::Add(s1, e1);
  }
  for (; c < cols; c += lanes) {
    const int64_t left = cols - c;
    if (left >= lanes) {
      const auto e = exp_of_difference(d, hn::Sub(hn::LoadU(d, x + c), shift));
      hn::StoreU(e, d, y + c);
      s0 = hn::Add(s0, e);
    } else {
      const auto e = exp_of_difference(d, hn::Sub(load_first(d, x + c, left), shift));
      store_first(d, e, y + c, left);
      s1 = hn::Add(s1, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(left)), e));
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

// y += x
HWY_INLINE void add_row(const float* x, float* y, int64_t cols) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= cols; c += lanes) hn::StoreU(hn::Add(hn::LoadU(d, y + c), hn::LoadU(d, x + c)), d, y + c);
  if (const int64_t left = cols - c; left > 0) {
    store_first(d, hn::Add(load_first(d, y + c, left), load_first(d, x + c, left)), y + c, left);
  }
}

// y = factor · x; y may be x.
HWY_INLINE void scale_row(const float* x, float factor, float* y, int64_t cols) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  int64_t c = 0;
  for (; c + lanes <= cols; c += lanes) hn::StoreU(hn::Mul(f, hn::LoadU(d, x + c)), d, y + c);
  if (c < cols) store_first(d, hn::Mul(f, load_first(d, x + c, cols - c)), y + c, cols - c);
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
