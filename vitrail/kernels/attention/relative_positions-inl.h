// SPDX-License-Identifier: Apache-2.0
// Scores of decomposed relative positions, in fp32.
// Included once for each target (no #pragma once: Highway toggles the guard).
#include "hwy/highway.h"
#include "vitrail/kernels/attention/head_panels-inl.h"
#include "vitrail/kernels/attention/relative_positions_internal.h"
#include "vitrail/kernels/gemm/fp32_microkernel-inl.h"

#if defined(VITRAIL_KERNELS_RELATIVE_POSITIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_RELATIVE_POSITIONS_INL_H_
#undef VITRAIL_KERNELS_RELATIVE_POSITIONS_INL_H_
#else
#define VITRAIL_KERNELS_RELATIVE_POSITIONS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

HWY_INLINE void pack_tables(const Head<float>& head, const RelativeScratch& scratch) {
  const RelativePositions& table = head.positions;
  if (!table.rows) return;
  const int64_t dim = head.head_dim, last_row = 2 * table.height - 2, last_column = 2 * table.width - 2;
  pack_across(table.rows + last_row * dim, -dim, last_row + 1, dim, 1.0f, scratch.rows);
  pack_across(table.columns + last_column * dim, -dim, last_column + 1, dim, 1.0f, scratch.columns);
}

// scores [queries][ld] = q · the rows of a packed table.
HWY_INLINE void multiply_table(const Head<float>& head, int64_t first, int64_t queries, const float* table, int64_t ld,
                               float* scores) {
  for (int64_t s = 0; s < ld; s += panel_columns()) {
    multiply_panel(head.q + first * head.q_stride, head.q_stride, table + s * head.head_dim, head.head_dim, queries,
                   StoredAccumulators<false>{scores + s, ld});
  }
}

// scores [height, width] += row_scores [height] + column_scores [width].
HWY_INLINE void add_grid(const float* row_scores, const float* column_scores, int64_t height, int64_t width,
                         float* scores) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t v = 0; v < height; ++v, scores += width) {
    const auto down = hn::Set(d, row_scores[v]);
    int64_t u = 0;
    for (; u + lanes <= width; u += lanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, scores + u), hn::Add(down, hn::LoadU(d, column_scores + u))), d, scores + u);
    }
    if (const int64_t left = width - u; left > 0) {
      const auto sum = hn::Add(down, load_first(d, column_scores + u, left));
      store_first(d, hn::Add(load_first(d, scores + u, left), sum), scores + u, left);
    }
  }
}

// The scores of a block of queries with both tables.
HWY_INLINE void multiply_tables(const Head<float>& head, const RelativeScratch& scratch, int64_t first,
                                int64_t queries) {
  multiply_table(head, first, queries, scratch.rows, scratch.ld_rows, scratch.row_scores);
  multiply_table(head, first, queries, scratch.columns, scratch.ld_columns, scratch.column_scores);
}

// Adds them to the scores [keys] of a query, the r-th of its block.  The reversed tables make the scores of one query
// with all keys a contiguous part of its row.
HWY_INLINE void add_relative_positions(const Head<float>& head, const RelativeScratch& scratch, int64_t query,
                                       int64_t r, float* scores) {
  const int64_t height = head.positions.height, width = head.positions.width;
  add_grid(scratch.row_scores + r * scratch.ld_rows + height - 1 - query / width,
           scratch.column_scores + r * scratch.ld_columns + width - 1 - query % width, height, width, scores);
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
