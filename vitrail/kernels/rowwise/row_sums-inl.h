// SPDX-License-Identifier: Apache-2.0
// Sums along a row.  Included once for each target (no #pragma once: Highway toggles the guard).
#include <cstdint>

#include "hwy/highway.h"
#include "vitrail/kernels/isa/vector_memory-inl.h"

#if defined(VITRAIL_KERNELS_ROW_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_ROW_SUMS_INL_H_
#undef VITRAIL_KERNELS_ROW_SUMS_INL_H_
#else
#define VITRAIL_KERNELS_ROW_SUMS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// Σ f(element): four running sums, so that additions do not wait for each other; the order depends on cols alone.
// f maps a vector of elements to a vector of terms; the lanes beyond the row are cleared afterwards.
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
  if (c < cols) {
    const auto inside = hn::FirstN(d, static_cast<size_t>(cols - c));
    s1 = hn::Add(s1, hn::IfThenElseZero(inside, f(load_first(d, x + c, cols - c))));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
