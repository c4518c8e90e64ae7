// SPDX-License-Identifier: Apache-2.0
// Attention by blocks: a thread packs one head's keys and values, then takes some queries at a time, whose scores
// (queries × keys) stay in its second-level cache from the first product over the softmax to the second.
#include "vitrail/kernels/attention/attention_heads_internal.h"
#include "vitrail/kernels/attention/relative_positions_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/attention/attention.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/attention/head_panels-inl.h"
#include "vitrail/kernels/attention/head_softmax-inl.h"
#include "vitrail/kernels/attention/relative_positions-inl.h"
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
  RelativeScratch relative = {};
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
  pack_tables(head, scratch.relative);
}

void attend(const Head<float>& head, const HeadScratch& scratch, int64_t first, int64_t queries) {
  const int64_t width = panel_columns();
  for (int64_t s = 0; s < head.keys; s += width) {
    multiply_part(head.q + first * head.q_stride, head.q_stride, scratch.keys + s * head.head_dim, head.head_dim,
                  queries, head.keys - s, StoredAccumulators<false>{scratch.scores + s, scratch.ld_scores});
  }
  if (head.positions.rows) multiply_tables(head, scratch.relative, first, queries);
  for (int64_t r = 0; r < queries; ++r) {
    float* const scores = scratch.scores + r * scratch.ld_scores;
    if (head.positions.rows) add_relative_positions(head, scratch.relative, first + r, r, scores);
    softmax_row_fp32(head, first + r, scores, scratch.inverses + r);
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
                                    positions.columns, scratch.relative.rows);
      for (int64_t s = 0; bias && s < head.keys; ++s) scratch.relative.rows[s] += bias[s];
      bias = scratch.relative.rows;
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
  const RelativeScratch sizes(args.positions, width);
  // The scalar version needs a row of `keys` in the place of the tables.
  const int64_t table_floats = args.positions.rows ? std::max(sizes.table_floats(args.head_dim), ld_scores) : 0;
  for_each_attention_task(args, tile, 200000, [&](uint64_t call, int64_t first, int64_t last) {
    const int64_t key_floats = ld_scores * args.head_dim, value_floats = args.keys * round_up(args.head_dim, width);
    float* const memory = thread_scratch(key_floats + value_floats + table_floats + block * (ld_scores + 1) +
                                         sizes.score_floats(block) + width);
    HeadScratch scratch{.keys = memory, .ld_scores = ld_scores, .relative = sizes};
    scratch.values = scratch.keys + key_floats;
    float* const tables = scratch.values + value_floats;
    scratch.scores = tables + table_floats;
    scratch.relative.place(tables, scratch.scores + block * ld_scores, args.head_dim, block);
    scratch.inverses = scratch.scores + block * ld_scores + sizes.score_floats(block);
    const HeadWorker<float, HeadScratch> worker{pack, run, scratch};
    attend_by_blocks(args, call, tile, block, worker, first, last);
  });
}

}  // namespace

bool attention_multiplies_bf16() { return active_features().has(Feature::avx512_bf16); }

void attention(const AttentionArgs& args) {
  const bool half = args.precision == Precision::half && attention_multiplies_bf16();
  half ? attention_in_bf16(args, attention_microkernels(active_features())) : attention_in_tiles(args);
}

void attention(const AttentionArgsOf<BFloat16>& args) {
  if (!attention_multiplies_bf16()) throw std::logic_error("attention of bf16 needs AVX-512 BF16");
  attention_in_bf16(args, attention_microkernels(active_features()));
}

}  // namespace vitrail::kernels
#endif
