// SPDX-License-Identifier: Apache-2.0
#pragma once
// A thread's memory for the decomposed relative positions of one head and one block of queries.
#include <cstdint>

#include "vitrail/kernels/attention/attention_heads_internal.h"

namespace vitrail::kernels {

// Both tables in panels like the keys of fp32 attention, but from the last row to the first, and the scores of the
// queries with them, [queries][ld_rows] and [queries][ld_columns].
struct RelativeScratch {
  float *rows = nullptr, *columns = nullptr, *row_scores = nullptr, *column_scores = nullptr;
  int64_t ld_rows = 0, ld_columns = 0;

  // panel: columns of a panel.  Without relative positions all sizes are 0.
  RelativeScratch() = default;
  RelativeScratch(const RelativePositions& positions, int64_t panel)
      : ld_rows(positions.rows ? round_up(2 * positions.height - 1, panel) : 0),
        ld_columns(positions.rows ? round_up(2 * positions.width - 1, panel) : 0) {}

  int64_t table_floats(int64_t head_dim) const { return (ld_rows + ld_columns) * head_dim; }
  int64_t score_floats(int64_t queries) const { return (ld_rows + ld_columns) * queries; }
  void place(float* tables, float* scores, int64_t head_dim, int64_t queries) {
    rows = tables;
    columns = rows + ld_rows * head_dim;
    row_scores = scores;
    column_scores = row_scores + ld_rows * queries;
  }
};

}  // namespace vitrail::kernels
