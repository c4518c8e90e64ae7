// SPDX-License-Identifier: Apache-2.0
// One head's queries, keys and values as panels, and what becomes of sums that are a head's results.  Shared by
// attention and its gradients.  Included once for each target (no #pragma once: Highway toggles the guard).
#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/gemm/fp32_microkernel-inl.h"
#include "vitrail/kernels/isa/vector_memory-inl.h"

#if defined(VITRAIL_KERNELS_HEAD_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_HEAD_PANELS_INL_H_
#undef VITRAIL_KERNELS_HEAD_PANELS_INL_H_
#else
#define VITRAIL_KERNELS_HEAD_PANELS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// Rows [rows, columns] as panels [panel][rows][panel columns], zeros beyond the last column.
HWY_INLINE void pack_along(const float* from, int64_t stride, int64_t rows, int64_t columns, float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t width = panel_columns();
  for (int64_t c = 0; c < round_up(columns, width); c += lanes) {
    float* const panel = to + c / width * width * rows + c % width;
    const int64_t left = columns - c;
    for (int64_t r = 0; r < rows; ++r) {
      const float* const row = from + r * stride + c;
      hn::Store(left >= lanes ? hn::LoadU(d, row)
                : left > 0    ? load_first(d, row, left)
                              : hn::Zero(d),
                d, panel + r * width);
    }
  }
}

// factor · the transpose of rows [rows, columns] as panels [panel][columns][panel columns]: each holds one element of
// as many rows side by side, zeros beyond the last row.
HWY_INLINE void pack_across(const float* from, int64_t stride, int64_t rows, int64_t columns, float factor, float* to) {
  const int64_t width = panel_columns();
  for (int64_t r = 0; r < rows; r += width) {
    pack_transposed(from + r * stride, stride, std::min(width, rows - r), columns, factor, to + r * columns);
  }
}

// Sums of one panel: multiplied on their way out, each row by its own factor (step 1) or all by one (step 0).
struct ScaledAccumulators {
  const float* factors;
  int64_t step;
  float* out;
  int64_t stride, columns;  // columns: at most the width of the panel

  template <class D>
  HWY_INLINE hn::Vec<D> begin(D d, int64_t, int64_t) const {
    return hn::Zero(d);
  }
  template <class D>
  HWY_INLINE void end(D d, int64_t row, hn::Vec<D> left, hn::Vec<D> right) const {
    const auto factor = hn::Set(d, factors[row * step]);
    store_panel_row(d, hn::Mul(left, factor), hn::Mul(right, factor), out + row * stride, columns);
  }
  template <class D>
  HWY_INLINE void end(D d, int64_t row, hn::Vec<D> left) const {
    store_first(d, hn::Mul(left, hn::Set(d, factors[row * step])), out + row * stride, columns);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
