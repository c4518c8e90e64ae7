// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tasks (gemm_tasks_internal.h) of the products whose numbers lie in words (dot_microkernels_internal.h).
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "vitrail/kernels/gemm/dot_microkernels_internal.h"
#include "vitrail/kernels/gemm/gemm_tasks_internal.h"
#include "vitrail/kernels/gemm/weight_correction_internal.h"

namespace vitrail::kernels {

inline bool contains(const TwoTermRows& rows, int64_t row) {
  return rows.stride > 0 && row >= rows.first && (row - rows.first) % rows.stride == 0;
}
// How many of them come before `row`.
inline int64_t count_before(const TwoTermRows& rows, int64_t row) {
  return rows.stride > 0 && row > rows.first ? (row - rows.first - 1) / rows.stride + 1 : 0;
}
// The same rows, counted from `row` on.
inline TwoTermRows starting_at(const TwoTermRows& rows, int64_t row) {
  if (rows.stride <= 0 || row <= rows.first) return {rows.first - row, rows.stride};
  return {(rows.stride - (row - rows.first) % rows.stride) % rows.stride, rows.stride};
}

// Where the quantised rows of x are: block by block, and in each block first its rows, then the low terms of its
// two-term rows, so that these go through the same register tiles.
class QuantizedRows {
 public:
  // max_slots: of a block, with its low terms; at most kMaxRows.
  QuantizedRows(int64_t rows, const TwoTermRows& two_term, int64_t max_slots)
      : rows_(rows), two_term_(two_term), block_(block_rows(rows, max_block_rows(two_term.stride, max_slots))) {}

  int64_t block() const { return block_; }
  int64_t num_slots() const { return rows_ + count_before(two_term_, rows_); }
  bool has_low_term(int64_t row) const { return contains(two_term_, row); }
  int64_t slot(int64_t row) const { return row + count_before(two_term_, row / block_ * block_); }
  int64_t low_term_slot(int64_t row) const {
    return std::min(row / block_ * block_ + block_, rows_) + count_before(two_term_, row);
  }
  TwoTermRows two_term_from(int64_t row) const { return starting_at(two_term_, row); }

 private:
  // The largest n with n + ⌈n / stride⌉ ≤ max_slots, or a little less.
  static int64_t max_block_rows(int64_t stride, int64_t max_slots) {
    return stride > 0 ? (max_slots - 1) * stride / (stride + 1) : max_slots;
  }

  int64_t rows_;
  TwoTermRows two_term_;
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
  const int32_t* x;  // [rows of `to`, then the low terms of two_term][words], `ldx` words apart
  int64_t ldx;
  TwoTermRows two_term;
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
                      .rows = task.to.rows + count_before(task.two_term, task.to.rows),
                      .sums = static_cast<int32_t*>(sums) + column,  // either type has 4 bytes
                      .ld_sums = kMaxColumns,
                      .accumulate = block > 0});
    }
  }
}

}  // namespace vitrail::kernels
