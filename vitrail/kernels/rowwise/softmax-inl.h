// SPDX-License-Identifier: Apache-2.0
// The passes of a softmax over one row, and the row operations that attention applies beside it.
// Included once per target: Highway toggles the include guard.
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
namespace hn = hwy::HWY_NAMESPACE;

// The largest element, −∞ for an empty row.  NaN may be ignored: the sum of exp_row() tells of it.
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

// e^x for x ≤ 0; 0 below −86.6.  Relative error 1.5e-7 + |x| / 2^23, which grows as the result gets small beside the 1
// that every softmax sum contains.
template <class D, class V>
HWY_INLINE V exp_nonpositive(D d, V x) {
  const V power = hn::Mul(x, hn::Set(d, 1.44269504f));
  return hn::IfThenZeroElse(hn::Lt(power, hn::Set(d, -125.0f)), exp2(d, power));
}

// y = e^(x − max); returns Σ y, which is NaN if an element of x is.  For max = −∞, that is a row of −∞ alone, 0 is
// subtracted instead, because −∞ − (−∞) would be NaN: y and the sum are 0.  y may be x.
HWY_INLINE float exp_row(const float* x, float max, float* y, int64_t cols) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, max == -std::numeric_limits<float>::infinity() ? 0.0f : max);
  auto s0 = hn::Zero(d), s1 = s0;
  int64_t c = 0;
  for (; c + 2 * lanes <= cols; c += 2 * lanes) {
    const auto e0 = exp_nonpositive(d, hn::Sub(hn::LoadU(d, x + c), shift));
    const auto e1 = exp_nonpositive(d, hn::Sub(hn::LoadU(d, x + c + lanes), shift));
    hn::StoreU(e0, d, y + c);
    hn::StoreU(e1, d, y + c + lanes);
    s0 = hn::Add(s0, e0);
    s1 = hn::Add(s1, e1);
  }
  for (; c < cols; c += lanes) {
    const int64_t left = cols - c;
    if (left >= lanes) {
      const auto e = exp_nonpositive(d, hn::Sub(hn::LoadU(d, x + c), shift));
      hn::StoreU(e, d, y + c);
      s0 = hn::Add(s0, e);
    } else {
      const auto e = exp_nonpositive(d, hn::Sub(load_first(d, x + c, left), shift));
      store_first(d, e, y + c, left);
      s1 = hn::Add(s1, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(left)), e));
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

// y += x
HWY_INLINE void add_row(const float* x, float* y, int64_t cols) {
  for_each_vector(hn::ScalableTag<float>(), cols, [=](int64_t c, auto memory) HWY_ATTR {
    memory.store(hn::Add(memory.load(y + c), memory.load(x + c)), y + c);
  });
}

// y = factor · x.  y may be x.
HWY_INLINE void scale_row(const float* x, float factor, float* y, int64_t cols) {
  const hn::ScalableTag<float> d;
  const auto factors = hn::Set(d, factor);
  for_each_vector(d, cols,
                  [=](int64_t c, auto memory) HWY_ATTR { memory.store(hn::Mul(factors, memory.load(x + c)), y + c); });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
