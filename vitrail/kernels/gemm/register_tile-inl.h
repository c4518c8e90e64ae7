// SPDX-License-Identifier: Apache-2.0
// The register tile of the microkernels that Highway compiles, in any arithmetic whose operands have 4 bytes: fp32
// values, or packed 32-bit K groups of int8.  Included once for each target (no #pragma once: Highway toggles the
// guard).
#include <algorithm>
#include <cstdint>
#include <utility>

#include "hwy/highway.h"
#include "vitrail/kernels/gemm/register_tile_internal.h"

#if defined(VITRAIL_KERNELS_REGISTER_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_REGISTER_TILE_INL_H_
#undef VITRAIL_KERNELS_REGISTER_TILE_INL_H_
#else
#define VITRAIL_KERNELS_REGISTER_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 6 × 2 accumulators, 2 vectors of the panel and 1 of x are 15 of the 16 registers of SSE4 and AVX2; of AVX-512's 32
// registers, 12 × 2 + 3 are 27.  (int8: the panel is read from memory, which leaves 2 registers for intermediates.)
#if HWY_TARGET == HWY_AVX3
constexpr int64_t kTileRows = 12;
#else
constexpr int64_t kTileRows = 6;
#endif

// A panel is two vectors of columns wide.
HWY_INLINE int64_t panel_columns() { return 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>())); }

// Accumulators in memory, [rows][columns of the panel]: where a tile begins (with accumulate) and ends.
template <bool accumulate, class T = float>
struct StoredAccumulators {
  T* c;
  int64_t ldc;

  template <class D>
  HWY_INLINE hn::Vec<D> begin(D d, int64_t row, int64_t column) const {
    return accumulate ? hn::LoadU(d, c + row * ldc + column) : hn::Zero(d);
  }
  template <class D>
  HWY_INLINE void end(D d, int64_t row, hn::Vec<D> left, hn::Vec<D> right) const {
    hn::StoreU(left, d, c + row * ldc);
    hn::StoreU(right, d, c + row * ldc + static_cast<int64_t>(hn::Lanes(d)));
  }
  template <class D>
  HWY_INLINE void end(D d, int64_t row, hn::Vec<D> left) const {
    hn::StoreU(left, d, c + row * ldc);
  }
};

// Rows [first, first + number of `row`): accumulators += a [rows, k] · panel [k, panel columns], or only the panel's
// left half.  With transposed_a, a is [k, rows].  Arithmetic has a tag type D and multiply_add(d, a, b, accumulator).
// `accumulators` is passed by value: through a reference its members would be read again after every store.
template <class Arithmetic, bool transposed_a, bool left_half, class T, class Accumulators, size_t... row>
HWY_NOINLINE void register_tile(std::index_sequence<row...>, int64_t first, const T* a, int64_t lda, const T* panel,
                                int64_t k, Accumulators accumulators, PrefetchInSteps& prefetch) {
  const typename Arithmetic::D d;
  using V = hn::Vec<typename Arithmetic::D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Arrays with constant indices only (a fold over `row`, no loop), so that the compiler keeps them in registers.
  V left[] = {accumulators.begin(d, first + static_cast<int64_t>(row), 0)...};
  [[maybe_unused]] V right[] = {
      (left_half ? hn::Zero(d) : accumulators.begin(d, first + static_cast<int64_t>(row), lanes))...};
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  const int64_t row_stride = kBytes * (transposed_a ? 1 : lda), k_stride = kBytes * (transposed_a ? lda : 1);
  RowPointers<sizeof...(row)> rows(a + first * (transposed_a ? 1 : lda), row_stride);
  for (int64_t p = 0; p < k;) {
    prefetch.step();
    for (const int64_t end = std::min(p + kPrefetchDepth, k); p < end; ++p, panel += 2 * lanes) {
      const V b0 = hn::Load(d, panel), b1 = left_half ? b0 : hn::Load(d, panel + lanes);
      auto multiply_add_row = [&](size_t r, V& l, V& right_accumulator) HWY_ATTR {
        const V value = hn::Set(d, rows.template load<T>(r));
        l = Arithmetic::multiply_add(d, value, b0, l);
        if constexpr (!left_half) right_accumulator = Arithmetic::multiply_add(d, value, b1, right_accumulator);
      };
      (multiply_add_row(row, left[row], right[row]), ...);
      rows.advance(k_stride);
    }
  }
  if constexpr (left_half) {
    (accumulators.end(d, first + static_cast<int64_t>(row), left[row]), ...);
  } else {
    (accumulators.end(d, first + static_cast<int64_t>(row), left[row], right[row]), ...);
  }
}

// Any number of rows.  Each accumulator runs over k in order: a row's bits do not depend on the tile that it falls in.
template <class Arithmetic, bool transposed_a, bool left_half, class T, class Accumulators>
HWY_INLINE void multiply_panel_by(const T* a, int64_t lda, const T* panel, int64_t k, int64_t rows,
                                  Accumulators accumulators, const NextPanel& next = {}) {
  PrefetchInSteps prefetch(next, rows, kTileRows, k);
  for_each_register_tile<kTileRows>(rows, [&](auto tile_rows, int64_t first) HWY_ATTR {
    register_tile<Arithmetic, transposed_a, left_half>(tile_rows, first, a, lda, panel, k, accumulators, prefetch);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
