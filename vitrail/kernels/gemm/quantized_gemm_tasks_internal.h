// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tasks (gemm_tasks_internal.h) of the products whose numbers lie in words (dot_microkernels_internal.h).
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "vitrail/kernels/gemm/dot_microkernels_internal.h"
#include "vitrail/kernels/gemm/gemm_tasks_internal.h"
#include "vitrail/kernels/gemm/weight_correction.h"

namespace vitrail::kernels {

// Which of a product's rows are given twice, as the nearest numbers and as what these leave of them: first, first +
// every, …; every 0: none.
struct TwoTermRows {
  int64_t first, every;

  bool hold(int64_t row) const { return every > 0 && row >= first && (row - first) % every == 0; }
  int64_t before(int64_t row) const { return every > 0 && row > first ? (row - first - 1) / every + 1 : 0; }
  // The one to wait for from row 0 on; −1: none.
  int64_t next() const { return every > 0 ? first : -1; }
};

// Where the words of a product's rows stand: those of a block of rows in turn, then the rests of the fine ones among
// them, so that these go through the same tiles.
class QuantizedRows {
 public:
  // most: rows of a block, at most kMaxRows.
  QuantizedRows(int64_t rows, int64_t two_term_every, int64_t most)
      : rows_(rows), fine_{0, two_term_every}, block_(block_rows(rows, most_rows(two_term_every, most))) {}

  int64_t block() const { return block_; }
  int64_t places() const { return rows_ + fine_.before(rows_); }
  bool is_fine(int64_t row) const { return fine_.hold(row); }
  int64_t place(int64_t row) const { return row + fine_.before(row / block_ * block_); }
  int64_t place_of_rest(int64_t row) const {
    return std::min(row / block_ * block_ + block_, rows_) + fine_.before(row);
  }
  // Of the block that begins with `first`, counted from there.
  TwoTermRows fine_from(int64_t first) const {
    return {fine_.every > 0 ? (fine_.every - first % fine_.every) % fine_.every : 0, fine_.every};
  }

 private:
  // Of which, with their rests, a block has room.
  static int64_t most_rows(int64_t two_term_every, int64_t most) {
    return two_term_every > 0 ? (most - 1) * two_term_every / (two_term_every + 1) : most;
  }

  int64_t rows_;
  TwoTermRows fine_;
  int64_t block_;
};

// What stands before the words of a row of x: what its numbers mean, such as their step.
template <class Heading>
constexpr int64_t kRowMetadataGroups = sizeof(Heading) / sizeof(int32_t);

template <class Heading>
Heading row_metadata_before(const int32_t* words) {
  Heading heading;
  std::memcpy(&heading, words - kRowMetadataGroups<Heading>, sizeof(heading));
  return heading;
}
template <class Heading>
void put_row_metadata_before(int32_t* words, const Heading& heading) {
  std::memcpy(words - kRowMetadataGroups<Heading>, &heading, sizeof(heading));
}

struct QuantizedGemmTask {
  const int32_t* x;  // [rows of `to`, then the rests of the fine ones][words], `ldx` words apart
  int64_t ldx;
  TwoTermRows fine;
  const int32_t* panels;  // each [words][width]
  int64_t words, width;
  DotMicrokernel add_panel;
  const float* bias;
  RowBias row_bias;  // in its place unless null, from this task's first column on
  int64_t first_row;
  TaskOutput to;
};

// sums [rows, then rests][kMaxColumns] of x · panels: a block of depth after the other.
inline void accumulate_task(const QuantizedGemmTask& task, void* sums) {
  const int64_t blocks = std::max<int64_t>(1, (task.words + kMaxDepth - 1) / kMaxDepth);
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = task.words * block / blocks, last = task.words * (block + 1) / blocks;
    for (int64_t column = 0; column < task.to.columns; column += task.width) {
      task.add_panel({.x = task.x + first,
                      .ldx = task.ldx,
                      .panel = task.panels + column * task.words + first * task.width,
                      .words = last - first,
                      .rows = task.to.rows + task.fine.before(task.to.rows),
                      .sums = static_cast<int32_t*>(sums) + column,  // either type has 4 bytes
                      .ld_sums = kMaxColumns,
                      .accumulate = block > 0});
    }
  }
}

}  // namespace vitrail::kernels
