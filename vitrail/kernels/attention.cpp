// Attention by blocks: a thread packs one head's keys and values, then takes some queries at a time, whose scores
// (queries × keys) stay in its second-level cache from the first product over the softmax to the second.
#include "vitrail/kernels/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/attention.cpp"
#include "vitrail/kernels/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/head_panels-inl.h"
#include "vitrail/kernels/softmax-inl.h"
#include "vitrail/kernels/tile-inl.h"

#ifndef VITRAIL_KERNELS_ATTENTION_ONCE
#define VITRAIL_KERNELS_ATTENTION_ONCE
namespace vitrail::kernels {
namespace {

// One (batch, head) with its operands found: what is left of the views are the strides between tokens.
struct Head {
  const float *q, *k, *v, *bias;  // bias may be null
  float *out, *weights;           // weights may be null
  int64_t q_stride, k_stride, v_stride, bias_stride, out_stride;
  int64_t keys, head_dim;
  float scale;
};

// A thread's own memory for one head and one block of queries.
struct HeadScratch {
  float* keys;      // scaled kᵀ in panels: [panel][head_dim][panel columns]
  float* values;    // v in panels: [panel][keys][panel columns]
  float* scores;    // [queries][ld_scores], ld_scores = keys rounded up to whole panels
  float* inverses;  // [queries]: 1 / the sum of a row's exponentials
  int64_t ld_scores;
};

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

int64_t attention_tile_rows() { return kTileRows; }
int64_t attention_panel_columns() { return panel_columns(); }

void pack_head(const Head& head, const HeadScratch& scratch) {
  pack_across(head.k, head.k_stride, head.keys, head.head_dim, head.scale, scratch.keys);
  pack_along(head.v, head.v_stride, head.keys, head.head_dim, scratch.values);
}

// Scores to exponentials, and to weights where they are asked for.
void soften_row(const Head& head, int64_t query, float* scores, float* inverse) {
  if (head.bias) add_row(head.bias + query * head.bias_stride, scores, head.keys);
  const float sum = exp_row(scores, row_max(scores, head.keys), scores, head.keys);
  *inverse = sum == 0 ? 0.0f : 1.0f / sum;  // 0: all keys masked
  if (head.weights) scale_row(scores, *inverse, head.weights + query * head.keys, head.keys);
}

void attend(const Head& head, const HeadScratch& scratch, int64_t first, int64_t queries) {
  const int64_t width = panel_columns();
  for (int64_t s = 0; s < head.keys; s += width) {
    multiply_panel(head.q + first * head.q_stride, head.q_stride, scratch.keys + s * head.head_dim, head.head_dim,
                   queries, StoredSums<false>{scratch.scores + s, scratch.ld_scores});
  }
  for (int64_t r = 0; r < queries; ++r) {
    soften_row(head, first + r, scratch.scores + r * scratch.ld_scores, scratch.inverses + r);
  }
  for (int64_t e = 0; e < head.head_dim; e += width) {
    multiply_panel(scratch.scores, scratch.ld_scores, scratch.values + e * head.keys, head.keys, queries,
                   ScaledSums{scratch.inverses, 1, head.out + first * head.out_stride + e, head.out_stride,
                              std::min(width, head.head_dim - e)});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/isa.h"
#include "vitrail/kernels/scalar.h"
#include "vitrail/kernels/thread_scratch.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(attention_tile_rows);
VITRAIL_EXPORT(attention_panel_columns);
VITRAIL_EXPORT(pack_head);
VITRAIL_EXPORT(attend);

Head head_of(const AttentionArgs& args, int64_t pair) {
  const int64_t b = pair / args.heads, h = pair % args.heads;
  auto start = [b, h](const auto& view) { return view.data + b * view.batch_stride + h * view.head_stride; };
  return {.q = start(args.q),
          .k = start(args.k),
          .v = start(args.v),
          .bias = args.bias.data ? start(args.bias) : nullptr,
          .out = start(args.out),
          .weights = args.weights ? args.weights + pair * args.queries * args.keys : nullptr,
          .q_stride = args.q.token_stride,
          .k_stride = args.k.token_stride,
          .v_stride = args.v.token_stride,
          .bias_stride = args.bias.query_stride,
          .out_stride = args.out.token_stride,
          .keys = args.keys,
          .head_dim = args.head_dim,
          .scale = args.scale};
}

int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

void attention_in_tiles(const AttentionArgs& args) {
  const int64_t tile = VITRAIL_DISPATCH(attention_tile_rows)();
  const int64_t width = VITRAIL_DISPATCH(attention_panel_columns)();
  auto* const pack = &VITRAIL_DISPATCH(pack_head);
  auto* const run = &VITRAIL_DISPATCH(attend);
  const int64_t ld_scores = round_up(args.keys, width);
  constexpr int64_t kScoreFloats = 10 << 10;  // 40 KiB: with 100 KiB of packed keys and values (N = 197) a third of L2
  const int64_t block = std::max<int64_t>(1, kScoreFloats / (ld_scores + 1) / tile) * tile;
  // Tasks are tiles of queries, head after head: a thread's stretch is balanced to the tile.
  const int64_t tiles = (args.queries + tile - 1) / tile;
  const int64_t flops = 4 * tile * args.keys * args.head_dim;
  const int64_t grain = 1 + 200000 / (flops + 1);  // 200,000 operations take 2 µs: what it costs to wake a team
  parallel_for(0, args.batch * args.heads * tiles, grain, [&](int64_t first, int64_t last) {
    const int64_t key_floats = ld_scores * args.head_dim, value_floats = args.keys * round_up(args.head_dim, width);
    float* const memory = thread_scratch(key_floats + value_floats + block * (ld_scores + 1) + width);
    const HeadScratch scratch{.keys = memory,
                              .values = memory + key_floats,
                              .scores = memory + key_floats + value_floats,
                              .inverses = memory + key_floats + value_floats + block * ld_scores,
                              .ld_scores = ld_scores};
    while (first < last) {
      const int64_t pair = first / tiles, end = std::min(last, (pair + 1) * tiles);
      const Head head = head_of(args, pair);
      pack(head, scratch);
      const int64_t last_query = std::min(args.queries, (end - pair * tiles) * tile);
      for (int64_t query = (first - pair * tiles) * tile; query < last_query; query += block) {
        run(head, scratch, query, std::min(block, last_query - query));
      }
      first = end;
    }
  });
}

void attention_by_reference(const AttentionArgs& args) {
  parallel_for(0, args.batch * args.heads, 1, [&](int64_t first, int64_t last) {
    std::vector<float> scores(args.keys);
    for (int64_t pair = first; pair < last; ++pair) {
      const Head head = head_of(args, pair);
      for (int64_t t = 0; t < args.queries; ++t) {
        scalar::attention_row(head.q + t * head.q_stride, head.k, head.k_stride, head.v, head.v_stride, head.keys,
                              head.head_dim, head.scale, head.bias ? head.bias + t * head.bias_stride : nullptr,
                              scores.data(), head.out + t * head.out_stride);
        if (head.weights) std::copy(scores.begin(), scores.end(), head.weights + t * head.keys);
      }
    }
  });
}

}  // namespace

void attention(const AttentionArgs& args) {
  if (active_isa() == Isa::scalar) {
    attention_by_reference(args);
  } else {
    attention_in_tiles(args);
  }
}

}  // namespace vitrail::kernels
#endif
