// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the tile products deal out their work: a task is a block of rows by a few neighbouring panels of the weight.
#include <algorithm>
#include <cstdint>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"

namespace vitrail::kernels {

// What stays in which cache while one block of depth goes through a task: a panel's block, 384 × 64 B = 24 KiB, in the
// first level; the rows of x, 192 × 1.5 KiB, and the sums, 192 × 512 B, in the second (512 KiB on Zen 3).  Measured on
// Zen 3 for all of ViT-Ti, S and B's products in fp32: 96 rows or a depth of 256 cost 0-10 % on the large ones.
constexpr int64_t kMaxRows = 192;
constexpr int64_t kMaxDepth = 384;  // in units of 4 bytes of x
constexpr int64_t kMaxColumns = 128;

// Blocks of about equal length, in whole tiles of 6 or 12.
inline int64_t block_rows(int64_t rows, int64_t most = kMaxRows) {
  const int64_t blocks = (rows + most - 1) / most, least = (rows + blocks - 1) / blocks;
  return std::min(most, (least + 5) / 6 * 6);
}

// The output of one task: a block of y.
struct TaskOutput {
  int64_t rows, columns;
  MatrixView<float> y;
  Epilogue epilogue;  // from this task's first row and column on
};

inline TaskOutput output_of(const GemmArgs& args, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  Epilogue epilogue = args.epilogue;
  Residual& residual = epilogue.residual;
  if (residual.data) residual.data += row * residual.ld + column;
  if (residual.scale) residual.scale += column;
  return {rows, columns, {args.y.data + row * args.y.ld + column, args.y.ld}, epilogue};
}

// body(first row, rows, first panel, panels) for all of it, in order of blocks of rows, then panels: each thread begins
// with a stretch of equal length, to the panel.  `grain`: the fewest panels of a block that are worth a thread.
template <class Body>
void for_each_gemm_task(int64_t rows, int64_t block, int64_t panels, int64_t panel_columns, int64_t grain,
                        const Body& body) {
  const int64_t blocks = (rows + block - 1) / block;
  parallel_for_balanced(0, blocks * panels, grain, [&](int64_t first, int64_t last) {
    while (first < last) {
      const int64_t row = first / panels * block, panel = first % panels;
      const int64_t count = std::min({kMaxColumns / panel_columns, panels - panel, last - first});
      body(row, std::min(block, rows - row), panel, count);
      first += count;
    }
  });
}

}  // namespace vitrail::kernels
