// SPDX-License-Identifier: Apache-2.0
// The matrix product that stays in registers: a few rows of a by one panel of b.  Shared by PackedLinear and attention.
// Included once for each target (no #pragma once: Highway toggles the guard).
//
// A panel is kPanel columns of b, packed [k][kPanel]: the product reads it front to back, aligned.  a is read where it
// lies: a tile walks along kTileRows rows at once, each value is used for a whole panel, so packing it would cost more
// than it saves (K = 192: one copy for 12 panels).
#include <algorithm>
#include <cstdint>
#include <utility>

#include "hwy/highway.h"
#include "vitrail/kernels/isa/vector_memory-inl.h"

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

// Four rows of four, transposed: to[i] of row stride `width` = f(from[0..3][i]), f of a vector or of a number.
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

// panel [k][panel columns] = f of the transpose of rows [columns, k]; columns that the rows do not fill are 0.
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

// f: times a factor.
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

// The same of words, as they are.
HWY_INLINE void pack_words_transposed(const int32_t* rows, int64_t ld, int64_t columns, int64_t k, int32_t* panel) {
  pack_transposed_by(
      rows, ld, columns, k, [](auto value) HWY_ATTR { return value; }, panel);
}

// A row's sums of one panel, of which the first `columns` are wanted.
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

// What a tile's sums begin with and where they go: sums [rows, panel columns] in memory.
template <bool accumulate>
struct StoredAccumulators {
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
  template <class D>
  HWY_INLINE void end(D d, int64_t row, hn::Vec<D> left) const {
    hn::StoreU(left, d, c + row * ldc);
  }
};

// sums of rows [first, first + number of `row`) = their beginning + a [rows, k] · panel [k, panel columns], or only
// those of the panel's left half.  With transposed_a, a is [k, rows]: the values of a tile lie side by side. `sums`
// goes by value: through a reference its members would be read again after every store.
template <bool transposed_a, bool left_half, class Sums, size_t... row>
HWY_NOINLINE void tile(std::index_sequence<row...>, int64_t first, const float* a, int64_t lda, const float* panel,
                       int64_t k, Sums sums) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Arrays with constant indices only (a fold over `row`, no loop), so that the compiler keeps them in registers.
  V left[] = {sums.begin(d, first + static_cast<int64_t>(row), 0)...};
  [[maybe_unused]] V right[] = {(left_half ? hn::Zero(d) : sums.begin(d, first + static_cast<int64_t>(row), lanes))...};
  // A pointer for each third row, in variables of their own: all stay in general registers.
  const int64_t ld = transposed_a ? 1 : lda, a_step = transposed_a ? lda : 1;
  const float *a0 = a + first * ld, *a1 = a0 + 3 * ld, *a2 = a0 + 6 * ld, *a3 = a0 + 9 * ld;
  for (int64_t p = 0; p < k; ++p, panel += 2 * lanes) {
    const V b0 = hn::Load(d, panel), b1 = left_half ? b0 : hn::Load(d, panel + lanes);
    auto step = [&](size_t r, V& l, V& right_sums) HWY_ATTR {
      const float* const group = r < 3 ? a0 : r < 6 ? a1 : r < 9 ? a2 : a3;
      const V value = hn::Set(d, group[static_cast<int64_t>(r % 3) * ld]);
      l = hn::MulAdd(value, b0, l);
      if constexpr (!left_half) right_sums = hn::MulAdd(value, b1, right_sums);
    };
    (step(row, left[row], right[row]), ...);
    a0 += a_step;
    a1 += a_step;
    asm("" : "+r"(a0), "+r"(a1));  // else the compiler makes a pointer of each row, and spills them
    if constexpr (sizeof...(row) > 6) {
      a2 += a_step;
      a3 += a_step;
      asm("" : "+r"(a2), "+r"(a3));
    }
  }
  if constexpr (left_half) {
    (sums.end(d, first + static_cast<int64_t>(row), left[row]), ...);
  } else {
    (sums.end(d, first + static_cast<int64_t>(row), left[row], right[row]), ...);
  }
}

// The last rows, fewer than a tile has.
template <bool transposed_a, bool left_half, class Sums, size_t... rows>
HWY_INLINE void tile_of_any(std::index_sequence<rows...>, int64_t count, int64_t first, const float* a, int64_t lda,
                            const float* panel, int64_t k, Sums sums) {
  (void)((count == static_cast<int64_t>(rows + 1) &&
          (tile<transposed_a, left_half>(std::make_index_sequence<rows + 1>(), first, a, lda, panel, k, sums), true)) ||
         ...);
}

// Any number of rows, in tiles.  Each sum runs over k in order: a row's bits do not depend on the tile it falls in.
template <bool transposed_a = false, bool left_half = false, class Sums>
HWY_INLINE void multiply_panel(const float* a, int64_t lda, const float* panel, int64_t k, int64_t rows, Sums sums) {
  int64_t r = 0;
  for (; r + kTileRows <= rows; r += kTileRows) {
    tile<transposed_a, left_half>(std::make_index_sequence<kTileRows>(), r, a, lda, panel, k, sums);
  }
  tile_of_any<transposed_a, left_half>(std::make_index_sequence<kTileRows - 1>(), rows - r, r, a, lda, panel, k, sums);
}

// The same where only `columns` of the panel's are wanted: half of the work where its left half has them.  What is
// written beyond them is not to be read.
template <bool transposed_a = false, class Sums>
HWY_INLINE void multiply_part(const float* a, int64_t lda, const float* panel, int64_t k, int64_t rows, int64_t columns,
                              Sums sums) {
  if (2 * columns <= panel_columns()) {
    multiply_panel<transposed_a, true>(a, lda, panel, k, rows, sums);
  } else {
    multiply_panel<transposed_a, false>(a, lda, panel, k, rows, sums);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
