// The matrix product that stays in registers: a few rows of a by one panel of b.  Shared by PackedLinear and attention.
// Included once for each target (no #pragma once: Highway toggles the guard).
//
// A panel is kPanel columns of b, packed [k][kPanel]: the product reads it front to back, aligned.  a is read where it
// lies: a tile walks along kTileRows rows at once, each value is used for a whole panel, so packing it would cost more
// than it saves (K = 192: one copy for 12 panels).
#include <cstdint>
#include <utility>

#include "hwy/highway.h"
#include "vitrail/kernels/vector_memory-inl.h"

#if defined(VITRAIL_KERNELS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_TILE_INL_H_
#undef VITRAIL_KERNELS_TILE_INL_H_
#else
#define VITRAIL_KERNELS_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// 6 × 2 sums, 2 of b and 1 of a are 15 of the 16 registers of SSE4 and AVX2; of AVX-512's 32, 12 × 2 + 3 are 27.
#if HWY_TARGET == HWY_AVX3
constexpr int64_t kTileRows = 12;
#else
constexpr int64_t kTileRows = 6;
#endif

HWY_INLINE int64_t panel_columns() { return 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>())); }

// What a tile's sums begin with and where they go: sums [rows, panel columns] in memory.
template <bool accumulate>
struct StoredSums {
  float* c;
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
};

// `sums` goes by value: through a reference its members would be read again after every store.
// sums of rows [first, first + number of `row`) = their beginning + a [rows, k] · panel [k, panel columns].
template <class Sums, size_t... row>
HWY_NOINLINE void tile(std::index_sequence<row...>, int64_t first, const float* a, int64_t lda, const float* panel,
                       int64_t k, Sums sums) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Arrays with constant indices only (a fold over `row`, no loop), so that the compiler keeps them in registers.
  V left[] = {sums.begin(d, first + static_cast<int64_t>(row), 0)...};
  V right[] = {sums.begin(d, first + static_cast<int64_t>(row), lanes)...};
  const float* const a_rows[] = {(a + (first + static_cast<int64_t>(row)) * lda)...};
  for (int64_t p = 0; p < k; ++p, panel += 2 * lanes) {
    const V b0 = hn::Load(d, panel), b1 = hn::Load(d, panel + lanes);
    auto step = [&](V value, V& l, V& r) HWY_ATTR {
      l = hn::MulAdd(value, b0, l);
      r = hn::MulAdd(value, b1, r);
    };
    (step(hn::Set(d, a_rows[row][p]), left[row], right[row]), ...);
  }
  (sums.end(d, first + static_cast<int64_t>(row), left[row], right[row]), ...);
}

// The last rows, fewer than a tile has.
template <class Sums, size_t... rows>
HWY_INLINE void tile_of_any(std::index_sequence<rows...>, int64_t count, int64_t first, const float* a, int64_t lda,
                            const float* panel, int64_t k, Sums sums) {
  (void)((count == static_cast<int64_t>(rows + 1) &&
          (tile(std::make_index_sequence<rows + 1>(), first, a, lda, panel, k, sums), true)) ||
         ...);
}

// Any number of rows, in tiles.  Each sum runs over k in order: a row's bits do not depend on the tile it falls in.
template <class Sums>
HWY_INLINE void multiply_panel(const float* a, int64_t lda, const float* panel, int64_t k, int64_t rows, Sums sums) {
  int64_t r = 0;
  for (; r + kTileRows <= rows; r += kTileRows) {
    tile(std::make_index_sequence<kTileRows>(), r, a, lda, panel, k, sums);
  }
  tile_of_any(std::make_index_sequence<kTileRows - 1>(), rows - r, r, a, lda, panel, k, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
