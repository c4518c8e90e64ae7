// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the register tiles of all microkernels share, whatever their target: a register tile multiplies a few rows of x
// by one packed panel, and its accumulators stay in registers along K.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hwy/base.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/gemm/dot_microkernels_internal.h"

namespace vitrail::kernels {

// The addresses of up to 12 rows at one position along K.  One pointer serves three rows (the addressing mode adds 0, 1
// or 2 × ld), so that all pointers stay in general registers.
template <size_t rows>
class RowPointers {
 public:
  HWY_INLINE RowPointers(const void* first_row, int64_t ld_bytes)
      : p0_(static_cast<const char*>(first_row)),
        p1_(p0_ + 3 * ld_bytes),
        p2_(p0_ + 6 * ld_bytes),
        p3_(p0_ + 9 * ld_bytes),
        ld_(ld_bytes) {}

  template <class T>
  HWY_INLINE T load(size_t row) const {
    const char* const group = row < 3 ? p0_ : row < 6 ? p1_ : row < 9 ? p2_ : p3_;
    return *reinterpret_cast<const T*>(group + static_cast<int64_t>(row % 3) * ld_);
  }

  // The empty asm statements keep the compiler from making one pointer per row, which it would spill.
  HWY_INLINE void advance(int64_t bytes) {
    p0_ += bytes;
    p1_ += bytes;
    asm("" : "+r"(p0_), "+r"(p1_));
    if constexpr (rows > 6) {
      p2_ += bytes;
      p3_ += bytes;
      asm("" : "+r"(p2_), "+r"(p3_));
    }
  }

 private:
  const char *p0_, *p1_, *p2_, *p3_;
  int64_t ld_;
};

template <size_t max_rows, class Tile, size_t... n>
HWY_INLINE void last_register_tile(std::index_sequence<n...>, int64_t rows, int64_t first, const Tile& tile) {
  (void)((rows == static_cast<int64_t>(n + 1) && (tile(std::make_index_sequence<n + 1>(), first), true)) || ...);
}

constexpr int64_t kCacheLine = 64;
constexpr int64_t kPrefetchDepth = 8;  // values or K groups of a register tile that make a step

// Prefetches what is multiplied next into the second-level cache, an equal part in each step: a load waits while all
// fill buffers of the first-level cache are taken.
class PrefetchInSteps {
 public:
  PrefetchInSteps(const NextPanel& panel, int64_t steps)
      : next_(static_cast<const char*>(panel.data)),
        lines_(steps > 0 ? ceil_div(panel.bytes / kCacheLine, steps) : 0) {}
  // For register tiles of `tile_rows` rows, and steps of kPrefetchDepth.
  PrefetchInSteps(const NextPanel& panel, int64_t rows, int64_t tile_rows, int64_t depth)
      : PrefetchInSteps(panel, ceil_div(rows, tile_rows) * (depth / kPrefetchDepth)) {}

  HWY_INLINE void step() {
    for (const char* const end = next_ + lines_ * kCacheLine; next_ < end; next_ += kCacheLine) {
      __builtin_prefetch(next_, 0, 2);
    }
  }

 private:
  const char* next_;
  int64_t lines_;  // per step
};

// Covers `rows` rows by register tiles: calls tile(std::index_sequence<0, …, n − 1>, first row) with n = max_rows for
// all but the last.  A row's result must not depend on n.
template <size_t max_rows, class Tile>
HWY_INLINE void for_each_register_tile(int64_t rows, const Tile& tile) {
  constexpr auto kMaxRows = static_cast<int64_t>(max_rows);
  int64_t first = 0;
  for (; first + kMaxRows <= rows; first += kMaxRows) tile(std::make_index_sequence<max_rows>(), first);
  last_register_tile<max_rows>(std::make_index_sequence<max_rows - 1>(), rows - first, first, tile);
}

}  // namespace vitrail::kernels
