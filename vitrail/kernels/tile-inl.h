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

// c [rows, panel] (+)= a [rows, k] · panel [k, panel columns].  c's rows may be unaligned.  Each sum runs over k in
// order, whatever the number of rows: a row's bits do not depend on the tile that it falls in.
template <size_t... row>
HWY_INLINE void tile(std::index_sequence<row...>, const float* a, int64_t lda, const float* panel, int64_t k,
                     bool accumulate, float* c, int64_t ldc) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Arrays with constant indices only (a fold over `row`, no loop), so that the compiler keeps them in registers.
  V left[] = {(accumulate ? hn::LoadU(d, c + row * ldc) : hn::Zero(d))...};
  V right[] = {(accumulate ? hn::LoadU(d, c + row * ldc + lanes) : hn::Zero(d))...};
  const float* const a_rows[] = {(a + row * lda)...};
  for (int64_t p = 0; p < k; ++p, panel += 2 * lanes) {
    const V b0 = hn::Load(d, panel), b1 = hn::Load(d, panel + lanes);
    auto step = [&](V value, V& l, V& r) HWY_ATTR {
      l = hn::MulAdd(value, b0, l);
      r = hn::MulAdd(value, b1, r);
    };
    (step(hn::Set(d, a_rows[row][p]), left[row], right[row]), ...);
  }
  (hn::StoreU(left[row], d, c + row * ldc), ...);
  (hn::StoreU(right[row], d, c + row * ldc + lanes), ...);
}

template <size_t rows>
HWY_NOINLINE void tile_of(const float* a, int64_t lda, const float* panel, int64_t k, bool accumulate, float* c,
                          int64_t ldc) {
  tile(std::make_index_sequence<rows>(), a, lda, panel, k, accumulate, c, ldc);
}

// The last rows, fewer than a tile has.
template <size_t... rows>
HWY_INLINE void tile_of_any(std::index_sequence<rows...>, int64_t count, const float* a, int64_t lda,
                            const float* panel, int64_t k, bool accumulate, float* c, int64_t ldc) {
  (void)((count == static_cast<int64_t>(rows + 1) && (tile_of<rows + 1>(a, lda, panel, k, accumulate, c, ldc), true)) ||
         ...);
}

// As tile(), for any number of rows.
HWY_INLINE void multiply_panel(const float* a, int64_t lda, const float* panel, int64_t k, int64_t rows,
                               bool accumulate, float* c, int64_t ldc) {
  int64_t r = 0;
  for (; r + kTileRows <= rows; r += kTileRows) {
    tile_of<kTileRows>(a + r * lda, lda, panel, k, accumulate, c + r * ldc, ldc);
  }
  tile_of_any(std::make_index_sequence<kTileRows - 1>(), rows - r, a + r * lda, lda, panel, k, accumulate, c + r * ldc,
              ldc);
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
