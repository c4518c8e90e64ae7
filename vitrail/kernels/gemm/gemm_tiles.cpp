// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/gemm_tiles_internal.h"

#include <algorithm>

#include "vitrail/base/parallel.h"
#include "vitrail/base/round_up_internal.h"

namespace vitrail::kernels {
namespace {

// Twice as many tiles as threads, so that a thread that loses its core leaves a tile to the others.  More would pack
// more: the GEMM of each tile packs its rows of one operand and its columns of the other.
constexpr int64_t kTilesPerThread = 2;
constexpr double kMinTileFlops = 1e6;  // some 10 µs, several times what a loop costs
// Tile edges are multiples of the register tiles of AVX-512 (8 rows × 48 columns) and of AVX2 (4 × 24).
constexpr int64_t kRowBlock = 8, kColumnBlock = 48;

// The first element of part i of `parts`.
int64_t edge(int64_t length, int64_t block, int64_t parts, int64_t i) {
  return std::min(length, ceil_div(length, block) * i / parts * block);
}

// The number of parts of the rows, of `tiles` in all, for which a tile packs the least.
int64_t row_parts(int64_t m, int64_t n, int64_t tiles) {
  const auto packed = [&](int64_t rows) { return ceil_div(m, rows) + ceil_div(n, tiles / rows); };
  int64_t best = 1;
  for (int64_t rows = 2; rows <= tiles; ++rows) {
    if (tiles % rows == 0 && packed(rows) < packed(best)) best = rows;
  }
  return best;
}

}  // namespace

void for_each_tile(int64_t m, int64_t n, int64_t k, FunctionRef<void(const Tile&)> body) {
  const double flops = 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const int64_t threads = num_threads();
  int64_t tiles = threads == 1 ? 1 : kTilesPerThread * threads;
  while (tiles > 1 && flops < kMinTileFlops * static_cast<double>(tiles)) tiles /= 2;
  const int64_t rows = row_parts(m, n, tiles), columns = tiles / rows;
  parallel_for_balanced(0, tiles, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t r = i / columns, c = i % columns;
      const int64_t row = edge(m, kRowBlock, rows, r), column = edge(n, kColumnBlock, columns, c);
      const Tile tile{row, edge(m, kRowBlock, rows, r + 1) - row, column,
                      edge(n, kColumnBlock, columns, c + 1) - column};
      if (tile.rows > 0 && tile.columns > 0) body(tile);
    }
  });
}

}  // namespace vitrail::kernels
