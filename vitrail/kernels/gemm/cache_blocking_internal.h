// SPDX-License-Identifier: Apache-2.0
#pragma once
// How our GEMMs divide the output among threads and caches: into blocks of some rows by a few adjacent panels of the
// weight (Goto and van de Geijn 2008: the constants are their m_c, k_c and n_c).
#include <algorithm>
#include <cstdint>

#include "vitrail/base/parallel.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"

namespace vitrail::kernels {

// While a block of K passes through an output block, the panel's part, 192 × 128 B = 24 KiB with AVX-512 and less
// without, stays in the first-level cache; the rows of x, 192 × 768 B, and the accumulators, 192 × 512 B, stay in the
// second (512 KiB on Zen 3).
constexpr int64_t kMaxBlockDepth = 192;  // along K, in units of 4 bytes of x
constexpr int64_t kMaxBlockColumns = 128;
constexpr int64_t kLargestBlockRows = std::max(RowBlocking{}.max, kAmxRows.max);

// The rows of a block, so that blocks are about equally long.
inline int64_t block_rows(int64_t rows, int64_t max = RowBlocking{}.max, int64_t tile = RowBlocking{}.tile) {
  const int64_t blocks = ceil_div(rows, max), even_split = ceil_div(rows, blocks);
  return std::min(max, round_up(even_split, tile));
}

// A block of y, with the part of the epilogue that belongs to its rows and columns.
struct OutputBlock {
  int64_t rows, columns;
  MatrixView<float> y;
  Epilogue epilogue;
};

inline OutputBlock output_block(const GemmArgs& args, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  Epilogue epilogue = args.epilogue;
  Residual& residual = epilogue.residual;
  if (residual.data) residual.data += row * residual.ld + column;
  if (residual.scale) residual.scale += column;
  return {rows, columns, {args.y.data + row * args.y.ld + column, args.y.ld}, epilogue};
}

// The panels of an output block: each [depth][width] in units of 4 bytes, one after another.
struct BlockPanels {
  const void* data;
  int64_t columns, depth, width;

  // What is multiplied after the part [first, last) along K of the panel at `column`: the same part of the next panel,
  // after the last panel the first one's next part, and at the end the next output block, whose panels follow.
  NextPanel after(int64_t column, int64_t first, int64_t last) const {
    const int64_t next_column = column + width;
    const int64_t begin = next_column < columns ? next_column * depth + first * width
                          : last < depth        ? last * width
                                                : next_column * depth;
    return {static_cast<const char*>(data) + 4 * begin, 4 * (last - first) * width};
  }
};

struct BlockGrid {
  int64_t rows, block_rows;
  int64_t panels, panel_columns;
};

// body(first row, rows, first panel, panels) for blocks that cover the output, ordered by rows, then panels.  Threads
// begin with ranges of equal length, cut between panels, and then steal work.  grain: the fewest panels of a block that
// are worth a thread.
template <class Body>
void for_each_output_block(const BlockGrid& grid, int64_t grain, const Body& body) {
  const int64_t blocks = ceil_div(grid.rows, grid.block_rows);
  parallel_for_balanced(0, blocks * grid.panels, grain, [&](int64_t first, int64_t last) {
    while (first < last) {
      const int64_t row = first / grid.panels * grid.block_rows, panel = first % grid.panels;
      const int64_t panels = std::min({kMaxBlockColumns / grid.panel_columns, grid.panels - panel, last - first});
      body(row, std::min(grid.block_rows, grid.rows - row), panel, panels);
      first += panels;
    }
  });
}

}  // namespace vitrail::kernels
