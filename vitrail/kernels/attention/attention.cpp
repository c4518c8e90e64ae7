// SPDX-License-Identifier: Apache-2.0
// Attention by blocks: a thread packs one head's keys and values, then takes some queries at a time, whose scores
// (queries × keys) stay in its second-level cache from the first product over the softmax to the second.
#include "vitrail/kernels/attention/attention_heads_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/attention/attention.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/attention/head_panels-inl.h"
#include "vitrail/kernels/attention/head_softmax-inl.h"
#include "vitrail/kernels/gemm/fp32_microkernel-inl.h"

#ifndef VITRAIL_KERNELS_ATTENTION_ONCE
#define VITRAIL_KERNELS_ATTENTION_ONCE
namespace vitrail::kernels {
namespace {

// A thread's own memory for one head and one block of queries.
struct HeadScratch {
  float* keys = nullptr;      // scaled kᵀ in panels: [panel][head_dim][panel columns]
  float* values = nullptr;    // v in panels: [panel][keys][panel columns]
  float* scores = nullptr;    // [queries][ld_scores], ld_scores = keys rounded up to whole panels
  float* inverses = nullptr;  // [queries]: 1 / the sum of a row's exponentials
  int64_t ld_scores = 0;
  // Both tables of relative positions in panels like the keys, but from the last row to the first, and the scores of
  // the queries with them, [queries][ld_rows] and [queries][ld_columns].
  float *rows = nullptr, *columns = nullptr, *row_scores = nullptr, *column_scores = nullptr;
  int64_t ld_rows = 0, ld_columns = 0;
};

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

int64_t attention_tile_rows() { return kTileRows; }
int64_t attention_panel_columns() { return panel_columns(); }

void pack_head(const Head<float>& head, const HeadScratch& scratch) {
  pack_across(head.k, head.k_stride, head.keys, head.head_dim, head.scale, scratch.keys);
  pack_along(head.v, head.v_stride, head.keys, head.head_dim, scratch.values);
  if (!head.positions.rows) return;
  const RelativePositions& table = head.positions;
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

// The reversed tables make the scores of one query with all keys a contiguous part of its row.
HWY_INLINE void add_relative_positions(const Head<float>& head, const HeadScratch& scratch, int64_t first,
                                       int64_t queries) {
  const int64_t height = head.positions.height, width = head.positions.width;
  multiply_table(head, first, queries, scratch.rows, scratch.ld_rows, scratch.row_scores);
  multiply_table(head, first, queries, scratch.columns, scratch.ld_columns, scratch.column_scores);
  for (int64_t r = 0; r < queries; ++r) {
    const int64_t y = (first + r) / width, x = (first + r) % width;
    add_grid(scratch.row_scores + r * scratch.ld_rows + height - 1 - y,
             scratch.column_scores + r * scratch.ld_columns + width - 1 - x, height, width,
             scratch.scores + r * scratch.ld_scores);
  }
}

void attend(const Head<float>& head, const HeadScratch& scratch, int64_t first, int64_t queries) {
  const int64_t width = panel_columns();
  for (int64_t s = 0; s < head.keys; s += width) {
    multiply_part(head.q + first * head.q_stride, head.q_stride, scratch.keys + s * head.head_dim, head.head_dim,
                  queries, head.keys - s, StoredAccumulators<false>{scratch.scores + s, scratch.ld_scores});
  }
  if (head.positions.rows) add_relative_positions(head, scratch, first, queries);
  for (int64_t r = 0; r < queries; ++r) {
    softmax_row_fp32(head, first + r, scratch.scores + r * scratch.ld_scores, scratch.inverses + r);
  }
  for (int64_t e = 0; e < head.head_dim; e += width) {
    const int64_t columns = std::min(width, head.head_dim - e);
    multiply_part(
        scratch.scores, scratch.ld_scores, scratch.values + e * head.keys, head.keys, queries, columns,
        ScaledAccumulators{scratch.inverses, 1, head.out + first * head.out_stride + e, head.out_stride, columns});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <stdexcept>

#include "vitrail/kernels/attention/scalar_attention_internal.h"
#include "vitrail/kernels/isa/thread_scratch_internal.h"

namespace vitrail::kernels {
namespace {

// The scalar reference takes the head as it is, one query at a time.
int64_t scalar_tile_rows() { return 1; }
int64_t scalar_panel_columns() { return 1; }
void scalar_pack_head(const Head<float>&, const HeadScratch&) {}
void scalar_attend(const Head<float>& head, const HeadScratch& scratch, int64_t first, int64_t queries) {
  const RelativePositions& positions = head.positions;
  for (int64_t t = first; t < first + queries; ++t) {
    const float* const q = head.q + t * head.q_stride;
    const float* bias = head.bias ? head.bias + t * head.bias_stride : nullptr;
    if (positions.rows) {
      scalar::relative_position_row(q, head.head_dim, t, positions.height, positions.width, positions.rows,
                                    positions.columns, scratch.rows);
      for (int64_t s = 0; bias && s < head.keys; ++s) scratch.rows[s] += bias[s];
      bias = scratch.rows;
    }
    scalar::attention_row(q, head.k, head.k_stride, head.v, head.v_stride, head.keys, head.head_dim, head.scale, bias,
                          scratch.scores, head.out + t * head.out_stride);
    if (head.weights) std::copy_n(scratch.scores, head.keys, head.weights + t * head.keys);
  }
}

VITRAIL_EXPORT(attention_tile_rows, scalar_tile_rows);
VITRAIL_EXPORT(attention_panel_columns, scalar_panel_columns);
VITRAIL_EXPORT(pack_head, scalar_pack_head);
VITRAIL_EXPORT(attend, scalar_attend);

void attention_in_tiles(const AttentionArgs& args) {
  const int64_t tile = VITRAIL_DISPATCH(attention_tile_rows)();
  const int64_t width = VITRAIL_DISPATCH(attention_panel_columns)();
  auto* const pack = &VITRAIL_DISPATCH(pack_head);
  auto* const run = &VITRAIL_DISPATCH(attend);
  const int64_t ld_scores = round_up(args.keys, width);
  constexpr int64_t kScoreFloats = 10 << 10;  // 40 KiB: with 100 KiB of packed keys and values (N = 197) a third of L2
  const int64_t block = std::max<int64_t>(1, kScoreFloats / (ld_scores + 1) / tile) * tile;
  const bool positions = args.positions.rows != nullptr;
  const int64_t ld_rows = positions ? round_up(2 * args.positions.height - 1, width) : 0;
  const int64_t ld_columns = positions ? round_up(2 * args.positions.width - 1, width) : 0;
  // The scalar version needs a row of `keys` in the place of the tables.
  const int64_t table_floats = positions ? std::max((ld_rows + ld_columns) * args.head_dim, ld_scores) : 0;
  for_each_attention_task(args, tile, 200000, [&](uint64_t call, int64_t first, int64_t last) {
    const int64_t key_floats = ld_scores * args.head_dim, value_floats = args.keys * round_up(args.head_dim, width);
    float* const memory = thread_scratch(key_floats + value_floats + table_floats +
                                         block * (ld_scores + ld_rows + ld_columns + 1) + width);
    HeadScratch scratch{.keys = memory, .ld_scores = ld_scores, .ld_rows = ld_rows, .ld_columns = ld_columns};
    scratch.values = scratch.keys + key_floats;
    scratch.rows = scratch.values + value_floats;
    scratch.columns = scratch.rows + ld_rows * args.head_dim;
    scratch.scores = scratch.rows + table_floats;
    scratch.row_scores = scratch.scores + block * ld_scores;
    scratch.column_scores = scratch.row_scores + block * ld_rows;
    scratch.inverses = scratch.column_scores + block * ld_columns;
    const HeadWorker<float, HeadScratch> worker{pack, run, scratch};
    attend_by_blocks(args, call, tile, block, worker, first, last);
  });
}

}  // namespace

void attention(const AttentionArgs& args) {
  const bool half = args.precision == Precision::half && active_features().has(Feature::avx512_bf16);
  if (half && !args.positions.rows) return attention_in_bf16(args);
  attention_in_tiles(args);
}

void attention(const AttentionArgsOf<BFloat16>& args) {
  if (!active_features().has(Feature::avx512_bf16)) throw std::logic_error("attention of bf16 needs AVX-512 BF16");
  attention_in_bf16(args);
}

}  // namespace vitrail::kernels
#endif
