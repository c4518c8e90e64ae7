// SPDX-License-Identifier: Apache-2.0
// What follows a product's sums, row by row: activation, scale and residual.  Shared by the tile products.
// Included once for each target (no #pragma once: Highway toggles the guard).
#include <cstdint>

#include "hwy/highway.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/isa/vector_memory-inl.h"
#include "vitrail/kernels/rowwise/activation-inl.h"

#if defined(VITRAIL_KERNELS_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_EPILOGUE_INL_H_
#undef VITRAIL_KERNELS_EPILOGUE_INL_H_
#else
#define VITRAIL_KERNELS_EPILOGUE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// Columns [first, columns) of one row: y = activation(sum(c)), then the residual.  `sum(d, c)`: the biased sums of a
// vector of columns from c on, which may go beyond the last.
template <Activation kind, bool coarse = false, class Sum>
HWY_INLINE void finish_row(const Sum& sum, int64_t first, int64_t columns, const float* scale, const float* residual,
                           float* y) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1.0f);
  int64_t c = first;
  for (; c + lanes <= columns; c += lanes) {
    auto v = activate<kind, coarse>(d, sum(d, c));
    if (residual) v = hn::MulAdd(scale ? hn::LoadU(d, scale + c) : one, v, hn::LoadU(d, residual + c));
    hn::StoreU(v, d, y + c);
  }
  if (const int64_t left = columns - c; left > 0) {
    auto v = activate<kind, coarse>(d, sum(d, c));
    if (residual) v = hn::MulAdd(scale ? load_first(d, scale + c, left) : one, v, load_first(d, residual + c, left));
    store_first(d, v, y + c, left);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
