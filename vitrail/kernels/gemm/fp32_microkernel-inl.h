// SPDX-License-Identifier: Apache-2.0
// The fp32 microkernel, and how its panels are packed.  Shared by PackedLinear and attention.
// Included once for each target (no #pragma once: Highway toggles the guard).
//
// A panel is panel_columns() columns of b, packed [k][panel columns]: the microkernel reads it front to back, aligned.
// a is read where it is: each of its values is used for all columns of a panel, so packing would cost more than it
// saves.
#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "vitrail/kernels/gemm/register_tile-inl.h"
#include "vitrail/kernels/isa/vector_memory-inl.h"

#if defined(VITRAIL_KERNELS_FP32_MICROKERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_FP32_MICROKERNEL_INL_H_
#undef VITRAIL_KERNELS_FP32_MICROKERNEL_INL_H_
#else
#define VITRAIL_KERNELS_FP32_MICROKERNEL_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// Transposes a 4 × 4 block: to[i * width + j] = f(from[j * ld + i]), where f takes a vector or a scalar.
template <class T, class F>
HWY_INLINE void transpose_4x4(const T* from, int64_t ld, const F& f, T* to, int64_t width) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) to[i * width + j] = f(from[j * ld + i]);
  }
#else
  const hn::FixedTag<T, 4> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + ld), r2 = hn::LoadU(d, from + 2 * ld),
             r3 = hn::LoadU(d, from + 3 * ld);
  const auto low01 = hn::InterleaveLower(d, r0, r1), high01 = hn::InterleaveUpper(d, r0, r1);
  const auto low23 = hn::InterleaveLower(d, r2, r3), high23 = hn::InterleaveUpper(d, r2, r3);
  hn::Store(f(hn::ConcatLowerLower(d, low23, low01)), d, to);
  hn::Store(f(hn::ConcatUpperUpper(d, low23, low01)), d, to + width);
  hn::Store(f(hn::ConcatLowerLower(d, high23, high01)), d, to + 2 * width);
  hn::Store(f(hn::ConcatUpperUpper(d, high23, high01)), d, to + 3 * width);
#endif
}

// panel [k][panel columns] = f(rowsᵀ) of rows [columns, k]; the columns from `columns` on are 0.
template <class T, class F>
HWY_INLINE void pack_transposed_by(const T* rows, int64_t ld, int64_t columns, int64_t k, const F& f, T* panel) {
  const int64_t width = panel_columns();
  for (int64_t c = 0; c < width; c += 4) {
    int64_t p = 0;
    if (c + 4 <= std::min(columns, width)) {
      for (; p + 4 <= k; p += 4) transpose_4x4(rows + c * ld + p, ld, f, panel + p * width + c, width);
    }
    for (; p < k; ++p) {
      for (int64_t i = c; i < std::min(c + 4, width); ++i)
        panel[p * width + i] = i < columns ? f(rows[i * ld + p]) : T();
    }
  }
}

struct Scaled {
  float factor;
  HWY_INLINE float operator()(float value) const { return factor * value; }
  template <class V>
  HWY_INLINE V operator()(V v) const {
    return hn::Mul(v, hn::Set(hn::DFromV<V>(), factor));
  }
};

HWY_INLINE void pack_transposed(const float* rows, int64_t ld, int64_t columns, int64_t k, float factor, float* panel) {
  pack_transposed_by(rows, ld, columns, k, Scaled{factor}, panel);
}

// The same of packed 32-bit K groups, unchanged.
HWY_INLINE void pack_groups_transposed(const int32_t* rows, int64_t ld, int64_t columns, int64_t k, int32_t* panel) {
  pack_transposed_by(
      rows, ld, columns, k, [](auto value) HWY_ATTR { return value; }, panel);
}

// Stores the first `columns` columns of a row of accumulators.
template <class D>
HWY_INLINE void store_panel_row(D d, hn::Vec<D> left, hn::Vec<D> right, float* to, int64_t columns) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (columns == 2 * lanes) {
    hn::StoreU(left, d, to);
    hn::StoreU(right, d, to + lanes);
  } else {
    store_first(d, left, to, std::min(columns, lanes));
    if (columns > lanes) store_first(d, right, to + lanes, columns - lanes);
  }
}

struct Fp32Arithmetic {
  using D = hn::ScalableTag<float>;
  template <class V>
  HWY_INLINE static V multiply_add(D, V a, V b, V accumulator) {
    return hn::MulAdd(a, b, accumulator);
  }
};

// accumulators [rows, panel columns] += a [rows, k] · panel [k, panel columns], or only the panel's left half.  With
// transposed_a, a is [k, rows].  `accumulators` says what they begin with and where they go, as StoredAccumulators
// does.
template <bool transposed_a = false, bool left_half = false, class Accumulators>
HWY_INLINE void multiply_panel(const float* a, int64_t lda, const float* panel, int64_t k, int64_t rows,
                               Accumulators accumulators, const NextPanel& next = {}) {
  multiply_panel_by<Fp32Arithmetic, transposed_a, left_half>(a, lda, panel, k, rows, accumulators, next);
}

// The same if only the first `columns` columns are used: half of the work if these are in the panel's left half.  What
// it writes beyond them is undefined.
template <bool transposed_a = false, class Accumulators>
HWY_INLINE void multiply_part(const float* a, int64_t lda, const float* panel, int64_t k, int64_t rows, int64_t columns,
                              Accumulators accumulators) {
  if (2 * columns <= panel_columns()) {
    multiply_panel<transposed_a, true>(a, lda, panel, k, rows, accumulators);
  } else {
    multiply_panel<transposed_a, false>(a, lda, panel, k, rows, accumulators);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
