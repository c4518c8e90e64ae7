// SPDX-License-Identifier: Apache-2.0
// The epilogue of our GEMMs: activation, scale and residual of one row of an output block.
// Included once for each target (no #pragma once: Highway toggles the guard).
#include <cstdint>

#include "hwy/highway.h"
#include "vitrail/kernels/gemm/cache_blocking_internal.h"
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

// Columns [first_column, out.columns) of a row of y.  biased(d, c): x Wᵀ + b for a vector of columns from c on, which
// may exceed the last.  coarse: with approximations that are fine enough for y in 8 or 16 bits (activation-inl.h).
template <Activation kind, bool coarse = false, class Biased>
HWY_INLINE void finish_row(const Biased& biased, const OutputBlock& out, int64_t row, int64_t first_column = 0) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1.0f);
  const float* const scale = out.epilogue.residual.scale;
  const float* residual = out.epilogue.residual.data;
  if (residual) residual += row * out.epilogue.residual.ld;
  float* const y = out.y.data + row * out.y.ld;
  int64_t c = first_column;
  for (; c + lanes <= out.columns; c += lanes) {
    auto v = activate<kind, coarse>(d, biased(d, c));
    if (residual) v = hn::MulAdd(scale ? hn::LoadU(d, scale + c) : one, v, hn::LoadU(d, residual + c));
    hn::StoreU(v, d, y + c);
  }
  if (const int64_t left = out.columns - c; left > 0) {
    auto v = activate<kind, coarse>(d, biased(d, c));
    if (residual) v = hn::MulAdd(scale ? load_first(d, scale + c, left) : one, v, load_first(d, residual + c, left));
    store_first(d, v, y + c, left);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
