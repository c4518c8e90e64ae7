// SPDX-License-Identifier: Apache-2.0
// Sums, mean and standard deviation along a row.
// Included once per target: Highway toggles the include guard.
#include <cmath>
#include <cstdint>

#include "hwy/highway.h"
#include "vitrail/kernels/isa/vector_memory-inl.h"

#if defined(VITRAIL_KERNELS_ROW_REDUCTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_ROW_REDUCTION_INL_H_
#undef VITRAIL_KERNELS_ROW_REDUCTION_INL_H_
#else
#define VITRAIL_KERNELS_ROW_REDUCTION_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Σ_c f(x[c]), where f maps a vector of elements to a vector of terms.  Four accumulators hide the latency of the
// additions; their order depends only on cols.
template <class D, class F>
HWY_INLINE float sum_row(D d, const float* x, int64_t cols, F&& f) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t c = 0;
  for (; c + 4 * lanes <= cols; c += 4 * lanes) {
    s0 = hn::Add(s0, f(hn::LoadU(d, x + c)));
    s1 = hn::Add(s1, f(hn::LoadU(d, x + c + lanes)));
    s2 = hn::Add(s2, f(hn::LoadU(d, x + c + 2 * lanes)));
    s3 = hn::Add(s3, f(hn::LoadU(d, x + c + 3 * lanes)));
  }
  for (; c + lanes <= cols; c += lanes) s0 = hn::Add(s0, f(hn::LoadU(d, x + c)));
  if (c < cols) {  // f of the zeros beyond the row need not be 0
    const auto inside = hn::FirstN(d, static_cast<size_t>(cols - c));
    s1 = hn::Add(s1, hn::IfThenElseZero(inside, f(load_first(d, x + c, cols - c))));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

struct RowStatistics {
  float mean, rstd;  // rstd = 1 / √(biased variance + ε)
};

// Two passes over a row in L1: E[x²] − mean² would lose the variance to cancellation.
HWY_INLINE RowStatistics row_statistics(const float* x, int64_t cols, float eps) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto n = static_cast<float>(cols);
  const float mean = sum_row(d, x, cols, [](V v) HWY_ATTR { return v; }) / n;
  const V means = hn::Set(d, mean);
  const float squares = sum_row(d, x, cols, [means](V v) HWY_ATTR {
    const V difference = hn::Sub(v, means);
    return hn::Mul(difference, difference);
  });
  return {mean, 1.0f / std::sqrt(squares / n + eps)};
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
