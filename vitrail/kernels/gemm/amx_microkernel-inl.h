// SPDX-License-Identifier: Apache-2.0
#pragma once
// The dot-product microkernels on AMX tiles.  Tiles is a class of amx_tiles_internal.h.
#include <algorithm>

#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/gemm/amx_tiles_internal.h"
#include "vitrail/kernels/gemm/dot_microkernels_internal.h"
#include "vitrail/kernels/gemm/register_tile_internal.h"

namespace vitrail::kernels {

template <class Tiles>
struct Int8Tiles : Tiles {
  template <size_t c, size_t a, size_t b>
  HWY_INLINE static void multiply_add() {
    Tiles::template multiply_add_int8<c, a, b>();
  }
};

template <class Tiles>
struct Bf16Tiles : Tiles {
  template <size_t c, size_t a, size_t b>
  HWY_INLINE static void multiply_add() {
    Tiles::template multiply_add_bf16<c, a, b>();
  }
};

// Tiles 0 to 3 are accumulators: 2 × 2 of them cover up to 32 rows and the 32 columns of a panel.  Tiles 4 and 5 have
// rows of x, tiles 6 and 7 the panel's left and right half.
template <class Tiles>
class AmxBlock {
 public:
  // rows: 1 to 32, from `first` on.
  AmxBlock(const DotMicrokernelArgs& args, int64_t first, int64_t rows)
      : x_(args.x + first * args.ldx),
        panel_(args.panel),
        x_stride_(args.ldx * 4),
        accumulators_(static_cast<int32_t*>(args.accumulators) + first * args.ld_accumulators),
        accumulator_stride_(args.ld_accumulators * 4),
        two_(rows > kTileRows) {}

  static TileConfig config(int64_t rows) {
    const int64_t upper = std::min(rows, kTileRows), lower = rows - upper;
    TileConfig config;
    for (const size_t tile : {0, 1, 4}) config.set(tile, upper);
    for (const size_t tile : {2, 3, 5}) {
      if (lower > 0) config.set(tile, lower);
    }
    for (const size_t tile : {6, 7}) config.set(tile, kTileGroups);
    return config;
  }

  // k_groups is a multiple of kTileGroups.  Prefetches one step for kTileGroups of them.
  HWY_INLINE void multiply(int64_t k_groups, bool accumulate, PrefetchInSteps& prefetch) const {
    two_ ? multiply<true>(k_groups, accumulate, prefetch) : multiply<false>(k_groups, accumulate, prefetch);
  }

 private:
  template <bool two>
  HWY_INLINE void multiply(int64_t k_groups, bool accumulate, PrefetchInSteps& prefetch) const {
    begin<two>(accumulate);
    const int32_t *x = x_, *panel = panel_;
    constexpr int64_t kPanelStride = kAvx512Columns * 4;
    for (int64_t k = 0; k < k_groups; k += kTileGroups) {
      Tiles::template load<4>(x, x_stride_);
      Tiles::template load<6>(panel, kPanelStride);
      Tiles::template load<7>(panel + kTileGroups, kPanelStride);
      Tiles::template multiply_add<0, 4, 6>();
      Tiles::template multiply_add<1, 4, 7>();
      prefetch.step();
      if constexpr (two) {
        Tiles::template load<5>(lower_half(x, x_stride_), x_stride_);
        Tiles::template multiply_add<2, 5, 6>();
        Tiles::template multiply_add<3, 5, 7>();
      }
      x += kTileGroups;
      panel += kTileGroups * kAvx512Columns;
    }
    end<two>();
  }

  template <bool two>
  HWY_INLINE void begin(bool accumulate) const {
    if (!accumulate) {
      Tiles::template zero<0>();
      Tiles::template zero<1>();
      if constexpr (two) {
        Tiles::template zero<2>();
        Tiles::template zero<3>();
      }
      return;
    }
    Tiles::template load<0>(accumulators_, accumulator_stride_);
    Tiles::template load<1>(accumulators_ + kTileGroups, accumulator_stride_);
    if constexpr (two) {
      Tiles::template load<2>(lower_half(accumulators_, accumulator_stride_), accumulator_stride_);
      Tiles::template load<3>(lower_half(accumulators_, accumulator_stride_) + kTileGroups, accumulator_stride_);
    }
  }

  template <bool two>
  HWY_INLINE void end() const {
    Tiles::template store<0>(accumulators_, accumulator_stride_);
    Tiles::template store<1>(accumulators_ + kTileGroups, accumulator_stride_);
    if constexpr (two) {
      Tiles::template store<2>(lower_half(accumulators_, accumulator_stride_), accumulator_stride_);
      Tiles::template store<3>(lower_half(accumulators_, accumulator_stride_) + kTileGroups, accumulator_stride_);
    }
  }

  template <class T>
  HWY_INLINE static T* lower_half(T* rows, int64_t stride_bytes) {
    return rows + kTileRows * stride_bytes / static_cast<int64_t>(sizeof(T));
  }

  const int32_t *x_, *panel_;
  int64_t x_stride_;
  int32_t* accumulators_;
  int64_t accumulator_stride_;  // bytes between rows
  bool two_;
};

// K groups beyond the last complete tile are left to `remainder`.  Blocks of 32 rows share a configuration.  Tiles:
// Int8Tiles or Bf16Tiles.
template <class Tiles>
void amx_dot(const DotMicrokernelArgs& args, DotMicrokernel remainder) {
  constexpr int64_t kBlockRows = 2 * kTileRows;
  const int64_t complete = args.k_groups / kTileGroups * kTileGroups;
  PrefetchInSteps prefetch(args.next, ceil_div(args.rows, kBlockRows) * (complete / kTileGroups));
  for (int64_t first = 0; complete > 0 && first < args.rows; first += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, args.rows - first);
    if (first == 0 || rows < kBlockRows) Tiles::configure(AmxBlock<Tiles>::config(rows));
    AmxBlock<Tiles>(args, first, rows).multiply(complete, args.accumulate, prefetch);
  }
  if (complete > 0) Tiles::release();
  if (complete > 0 && complete == args.k_groups) return;
  DotMicrokernelArgs last = args;
  last.x += complete;
  last.panel += complete * kAvx512Columns;
  last.k_groups -= complete;
  last.accumulate = args.accumulate || complete > 0;
  remainder(last);
}

}  // namespace vitrail::kernels
