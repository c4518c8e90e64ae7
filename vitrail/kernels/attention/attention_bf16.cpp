// SPDX-License-Identifier: Apache-2.0
// Attention by blocks, as in attention.cpp, with both GEMMs in 16 bits.  Their operands are rounded and packed in
// 32-bit K groups of two values (dot_microkernels_internal.h): along the head's dimension for the scores, along the
// keys for the output.
//
// v and the attention weights are rounded to bf16, and so are q and k if they are bf16 in memory, or with AMX.  Without
// AMX, q and k in fp32 are quantised to int16 (int16_quantization_internal.h), with a scale for each query and one
// scale for a head's keys: that is as fast as bf16 by AVX-512 and more accurate.
#include <cmath>
#include <type_traits>

#include "vitrail/kernels/attention/attention_heads_internal.h"
#include "vitrail/kernels/attention/relative_positions_internal.h"
#include "vitrail/kernels/gemm/dot_microkernels_internal.h"
#include "vitrail/kernels/gemm/int16_quantization_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/attention/attention_bf16.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/attention/head_packing-inl.h"
#include "vitrail/kernels/attention/head_softmax-inl.h"
#include "vitrail/kernels/attention/relative_positions-inl.h"
#include "vitrail/kernels/gemm/int16_rows-inl.h"
#include "vitrail/kernels/isa/vector_math-inl.h"

#ifndef VITRAIL_KERNELS_ATTENTION_BF16_ONCE
#define VITRAIL_KERNELS_ATTENTION_BF16_ONCE
namespace vitrail::kernels {
namespace {

constexpr int64_t kStorePadding = 16;  // groups of one vector: stores may pass the end of the last row

// The calling thread's memory for one head and one block of queries.  Panels have kAvx512Columns columns.
struct Bf16HeadScratch {
  int32_t* keys = nullptr;    // scaled kᵀ in panels: [panel][dim_groups][columns]
  int32_t* values = nullptr;  // v in panels: [panel][key_groups][columns], two keys in a group
  float* scores = nullptr;  // [queries][ld_scores], ld_scores = keys rounded up to panels; int32 accumulators at first
  float* accumulators = nullptr;  // [queries][columns]
  int32_t* queries = nullptr;     // [queries][dim_groups]
  int32_t* weights = nullptr;     // [queries][key_groups], then kStorePadding
  float* inverses = nullptr;      // [queries]: 1 / the sum of a row's exponentials
  float* score_scales = nullptr;  // [queries]: scale of int32 scores
  float* key_scale = nullptr;     // scale of the head's keys, times |attention scale|
  bool int16_scores = false;      // AttentionMicrokernels
  float* packing = nullptr;       // packing_floats(head_dim)
  float max_norm = 0;             // max_int16_norm(head_dim)
  int64_t ld_scores = 0, dim_groups = 0, key_groups = 0;
  RelativeScratch relative = {};  // unused if q is bf16
  DotMicrokernel add_scores = nullptr, add_values = nullptr;
};

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

constexpr float kMaxShift = 1e38f;  // times log2 e it is finite

// A score as fp32; an int32 accumulator is converted.
template <bool is_int32, class D>
HWY_INLINE hn::Vec<D> score_of(D d, hn::Vec<D> v) {
  if constexpr (is_int32) v = hn::ConvertTo(d, hn::BitCast(hn::RebindToSigned<D>(), v));
  return v;
}

// Writes e^(scale · x − max) for |max| ≤ kMaxShift as bf16 groups, and returns their sum before rounding (NaN if x has
// a NaN).  After the last, zeros are written up to a multiple of two vectors, at most kStorePadding groups.
template <bool is_int32>
HWY_INLINE float exp_to_groups(const float* x, float scale, float max, int32_t* groups, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> bits_d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr float kLog2e = 1.44269504f;
  const auto log2e = hn::Set(d, scale * kLog2e), shift = hn::Set(d, -max * kLog2e);
  const auto half = hn::Set(bits_d, 0x8000);  // ties round up: no value is negative, and the sum shows a NaN
  auto* const to = reinterpret_cast<uint16_t*>(groups);
  auto low_sum = hn::Zero(d), high_sum = low_sum;
  auto power = [&](auto v) HWY_ATTR { return coarse_exp2(d, hn::MulAdd(score_of<is_int32>(d, v), log2e, shift)); };
  auto power_of_tail = [&](int64_t c) HWY_ATTR {  // 0 beyond the last element
    const int64_t left = n - c;
    if (left >= lanes) return power(hn::LoadU(d, x + c));
    if (left <= 0) return hn::Zero(d);
    return hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(left)), power(load_first(d, x + c, left)));
  };
  auto store = [&](auto low, auto high, int64_t c) HWY_ATTR {
    low_sum = hn::Add(low_sum, low);
    high_sum = hn::Add(high_sum, high);
    store_upper_halves(bits_d, hn::Add(hn::BitCast(bits_d, low), half), hn::Add(hn::BitCast(bits_d, high), half),
                       to + c);
  };
  int64_t c = 0;
  for (; c + 2 * lanes <= n; c += 2 * lanes) {
    store(power(hn::LoadU(d, x + c)), power(hn::LoadU(d, x + c + lanes)), c);
  }
  if (c < n) store(power_of_tail(c), power_of_tail(c + lanes), c);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(low_sum, high_sum)));
}

// Weights [keys] → groups, zeros after the last.
HWY_INLINE void round_weights(const float* weights, int64_t keys, int32_t* groups, int64_t key_groups) {
  std::fill(groups + keys / 2, groups + key_groups, 0);
  round_to_groups(weights, keys, groups);
}

// Softmax of a row of scores: exponentials as bf16 groups, the inverse of their sum, and weights if args ask for them.
template <class T>
HWY_INLINE void softmax_to_groups(const Head<T>& head, int64_t query, float* scores, int32_t* groups,
                                  int64_t key_groups, float* inverse) {
  if (head.weights) {
    softmax_row_fp32(head, query, scores, inverse);
    return round_weights(scores, head.keys, groups, key_groups);
  }
  if (head.bias) add_row(head.bias + query * head.bias_stride, scores, head.keys);
  const float max = row_max(scores, head.keys);
  if (!(std::abs(max) <= kMaxShift)) {  // all masked, or not finite
    const float sum = exp_row(scores, max, scores, head.keys);
    *inverse = sum == 0 ? 0.0f : 1.0f / sum;
    return round_weights(scores, head.keys, groups, key_groups);
  }
  *inverse = 1.0f / exp_to_groups<false>(scores, 1, max, groups, head.keys);  // the sum is at least 1
}

HWY_INLINE int32_t max_int32(const float* accumulators, int64_t n) {
  const hn::ScalableTag<int32_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* const x = reinterpret_cast<const int32_t*>(accumulators);
  auto max = hn::Set(d, x[0]);
  int64_t c = 0;
  for (; c + lanes <= n; c += lanes) max = hn::Max(max, hn::LoadU(d, x + c));
  int32_t result = hn::GetLane(hn::MaxOfLanes(d, max));
  for (; c < n; ++c) result = std::max(result, x[c]);
  return result;
}

// int32 accumulators → fp32 scores, in place.
HWY_INLINE void scale_int32(float* accumulators, float scale, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  int64_t c = 0;
  for (; c + lanes <= n; c += lanes) {
    hn::StoreU(hn::Mul(factor, score_of<true>(d, hn::LoadU(d, accumulators + c))), d, accumulators + c);
  }
  if (c < n)
    store_first(d, hn::Mul(factor, score_of<true>(d, load_first(d, accumulators + c, n - c))), accumulators + c, n - c);
}

// The same for int32 scores with a scale.
HWY_INLINE void softmax_int32_to_groups(const Head<float>& head, int64_t query, float* accumulators, float scale,
                                        int32_t* groups, int64_t key_groups, float* inverse) {
  if (!head.weights && !head.bias && head.keys > 0) {
    const float max = scale * static_cast<float>(max_int32(accumulators, head.keys));
    if (std::abs(max) <= kMaxShift) {
      *inverse = 1.0f / exp_to_groups<true>(accumulators, scale, max, groups, head.keys);
      return;
    }
  }
  scale_int32(accumulators, scale, head.keys);
  softmax_to_groups(head, query, accumulators, groups, key_groups, inverse);
}

// One int16 scale for all rows: that of the row of column-wise maxima, whose norm no row exceeds.  NaN if a value is
// not finite.  `packing` has `columns` floats.
HWY_INLINE float int16_scale_of_all(const float* rows, int64_t stride, int64_t count, int64_t columns, float* packing) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> bits_d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto magnitude = hn::Set(bits_d, 0x7fffffff);
  for (int64_t c = 0; c < columns; c += lanes) {
    const int64_t left = columns - c;
    auto max = hn::Zero(bits_d);  // compared as integers, NaN and infinity are the largest
    for (int64_t r = 0; r < count; ++r) {
      max = hn::Max(max, hn::And(hn::BitCast(bits_d, load_wide(d, rows + r * stride + c, left)), magnitude));
    }
    left >= lanes ? hn::StoreU(hn::BitCast(d, max), d, packing + c)
                  : store_first(d, hn::BitCast(d, max), packing + c, left);
  }
  return int16_scale(packing, columns, max_int16_norm(columns));
}

HWY_INLINE void pack_keys(const Head<float>& head, const Bf16HeadScratch& scratch) {
  pack_tables(head, scratch.relative);
  if (!scratch.int16_scores) {
    return pack_groups_across(head.k, head.k_stride, head.keys, head.head_dim, head.scale, scratch.packing,
                              scratch.keys);
  }
  const float scale = int16_scale_of_all(head.k, head.k_stride, head.keys, head.head_dim, scratch.packing);
  *scratch.key_scale = scale * std::abs(head.scale);
  const auto round = [&](const float* row, int32_t* groups) HWY_ATTR {
    if (head.head_dim % 2 != 0) groups[head.head_dim / 2] = 0;
    quantize_int16(row, head.head_dim, std::copysign(scale, head.scale), reinterpret_cast<int16_t*>(groups));
  };
  pack_rounded_across(head.k, head.k_stride, head.keys, head.head_dim, round,
                      reinterpret_cast<int32_t*>(scratch.packing), scratch.keys);
}
HWY_INLINE void pack_keys(const Head<BFloat16>& head, const Bf16HeadScratch& scratch) {
  pack_groups_across(head.k, head.k_stride, head.keys, head.head_dim, head.scale, scratch.packing, scratch.keys);
}

HWY_INLINE void round_query(const Head<float>& head, int64_t query, int64_t r, const Bf16HeadScratch& scratch) {
  int32_t* const groups = scratch.queries + r * scratch.dim_groups;
  if (!scratch.int16_scores) return round_to_groups(head.q + query * head.q_stride, head.head_dim, groups);
  if (head.head_dim % 2 != 0) groups[head.head_dim / 2] = 0;
  const float scale = quantize_int16_row(head.q + query * head.q_stride, head.head_dim, scratch.max_norm,
                                         reinterpret_cast<int16_t*>(groups));
  scratch.score_scales[r] = *scratch.key_scale * scale;
}
HWY_INLINE void round_query(const Head<BFloat16>& head, int64_t query, int64_t r, const Bf16HeadScratch& scratch) {
  round_to_groups(head.q + query * head.q_stride, head.head_dim, scratch.queries + r * scratch.dim_groups);
}

HWY_INLINE void softmax_row(const Head<float>& head, int64_t query, int64_t r, const Bf16HeadScratch& scratch) {
  float* const scores = scratch.scores + r * scratch.ld_scores;
  int32_t* const groups = scratch.weights + r * scratch.key_groups;
  if (scratch.int16_scores && !head.positions.rows) {
    return softmax_int32_to_groups(head, query, scores, scratch.score_scales[r], groups, scratch.key_groups,
                                   scratch.inverses + r);
  }
  if (scratch.int16_scores) scale_int32(scores, scratch.score_scales[r], head.keys);
  if (head.positions.rows) add_relative_positions(head, scratch.relative, query, r, scores);
  softmax_to_groups(head, query, scores, groups, scratch.key_groups, scratch.inverses + r);
}
HWY_INLINE void softmax_row(const Head<BFloat16>& head, int64_t query, int64_t r, const Bf16HeadScratch& scratch) {
  softmax_to_groups(head, query, scratch.scores + r * scratch.ld_scores, scratch.weights + r * scratch.key_groups,
                    scratch.key_groups, scratch.inverses + r);
}

template <class T>
HWY_INLINE void pack_bf16(const Head<T>& head, const Bf16HeadScratch& scratch) {
  pack_keys(head, scratch);
  pack_groups_along(head.v, head.v_stride, head.keys, head.head_dim, scratch.key_groups, scratch.values);
}

template <class T>
HWY_INLINE void attend_bf16(const Head<T>& head, const Bf16HeadScratch& scratch, int64_t first, int64_t queries) {
  for (int64_t r = 0; r < queries; ++r) round_query(head, first + r, r, scratch);
  for (int64_t s = 0; s < head.keys; s += kAvx512Columns) {
    scratch.add_scores({.x = scratch.queries,
                        .ldx = scratch.dim_groups,
                        .panel = scratch.keys + s * scratch.dim_groups,
                        .k_groups = scratch.dim_groups,
                        .rows = queries,
                        .accumulators = scratch.scores + s,
                        .ld_accumulators = scratch.ld_scores,
                        .columns = head.keys - s});
  }
  if constexpr (std::is_same_v<T, float>) {
    if (head.positions.rows) multiply_tables(head, scratch.relative, first, queries);
  }
  for (int64_t r = 0; r < queries; ++r) softmax_row(head, first + r, r, scratch);
  for (int64_t e = 0; e < head.head_dim; e += kAvx512Columns) {
    scratch.add_values({.x = scratch.weights,
                        .ldx = scratch.key_groups,
                        .panel = scratch.values + e * scratch.key_groups,
                        .k_groups = scratch.key_groups,
                        .rows = queries,
                        .accumulators = scratch.accumulators,
                        .ld_accumulators = kAvx512Columns,
                        .columns = head.head_dim - e});
    for (int64_t r = 0; r < queries; ++r) {
      scale_out(scratch.accumulators + r * kAvx512Columns, scratch.inverses[r],
                head.out + (first + r) * head.out_stride + e, std::min(kAvx512Columns, head.head_dim - e));
    }
  }
}

// Dispatched kernels are no templates.
int64_t table_panel_columns() { return panel_columns(); }
void pack_float_head(const Head<float>& head, const Bf16HeadScratch& scratch) { pack_bf16(head, scratch); }
void pack_narrow_head(const Head<BFloat16>& head, const Bf16HeadScratch& scratch) { pack_bf16(head, scratch); }
void attend_float(const Head<float>& head, const Bf16HeadScratch& scratch, int64_t first, int64_t queries) {
  attend_bf16(head, scratch, first, queries);
}
void attend_narrow(const Head<BFloat16>& head, const Bf16HeadScratch& scratch, int64_t first, int64_t queries) {
  attend_bf16(head, scratch, first, queries);
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/kernels/isa/thread_scratch_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(table_panel_columns, nullptr);
VITRAIL_EXPORT(pack_float_head, nullptr);
VITRAIL_EXPORT(pack_narrow_head, nullptr);
VITRAIL_EXPORT(attend_float, nullptr);
VITRAIL_EXPORT(attend_narrow, nullptr);

template <class T>
using Bf16Worker = HeadWorker<T, Bf16HeadScratch>;

// The calling thread's scratch memory, in arrays that are aligned for vectors.
template <class T>
Bf16HeadScratch bf16_scratch(const AttentionArgsOf<T>& args, const AttentionMicrokernels& microkernels, int64_t block) {
  constexpr bool is_fp32 = std::is_same_v<T, float>;
  Bf16HeadScratch s{.int16_scores = is_fp32 && microkernels.int16_scores,
                    .max_norm = max_int16_norm(args.head_dim),
                    .ld_scores = round_up(args.keys, kAvx512Columns),
                    .dim_groups = (args.head_dim + 1) / 2,
                    .key_groups = round_up((args.keys + 1) / 2, microkernels.tile_groups),
                    .relative = RelativeScratch(args.positions, VITRAIL_DISPATCH(table_panel_columns)()),
                    .add_scores = is_fp32 ? microkernels.scores_of_fp32 : microkernels.scores_of_bf16,
                    .add_values = microkernels.values};
  int64_t total = 0;
  auto take = [&total](int64_t elements) { return std::exchange(total, total + round_up(elements, 16)); };
  const int64_t keys = take(s.ld_scores * s.dim_groups),
                values = take(round_up(args.head_dim, kAvx512Columns) * s.key_groups),
                scores = take(block * s.ld_scores), accumulators = take(block * kAvx512Columns),
                queries = take(block * s.dim_groups), weights = take(block * s.key_groups + kStorePadding),
                inverses = take(block), score_scales = take(block), key_scale = take(1),
                packing = take(packing_floats(args.head_dim)), tables = take(s.relative.table_floats(args.head_dim)),
                table_scores = take(s.relative.score_floats(block));
  float* const memory = thread_scratch(total);
  auto groups = [memory](int64_t at) { return reinterpret_cast<int32_t*>(memory + at); };
  s.keys = groups(keys);
  s.values = groups(values);
  s.scores = memory + scores;
  s.accumulators = memory + accumulators;
  s.queries = groups(queries);
  s.weights = groups(weights);
  s.inverses = memory + inverses;
  s.score_scales = memory + score_scales;
  s.key_scale = memory + key_scale;
  s.packing = memory + packing;
  s.relative.place(memory + tables, memory + table_scores, args.head_dim, block);
  return s;
}

template <class T>
void attend_all(const AttentionArgsOf<T>& args, const AttentionMicrokernels& microkernels,
                decltype(Bf16Worker<T>::pack_head) pack, decltype(Bf16Worker<T>::attend_head) attend) {
  constexpr int64_t kScoreElements = 20 << 10;  // 80 KiB in fp32, and half of it rounded: an eighth of L2
  const int64_t ld_scores = round_up(args.keys, kAvx512Columns);
  const int64_t tile = microkernels.tile_rows;
  const int64_t block = std::max<int64_t>(1, kScoreElements / (ld_scores + 1) / tile) * tile;
  for_each_attention_task(args, tile, 400000, [&](uint64_t call, int64_t first, int64_t last) {
    const Bf16Worker<T> worker{pack, attend, bf16_scratch(args, microkernels, block)};
    attend_by_blocks(args, call, tile, block, worker, first, last);
  });
}

}  // namespace

AttentionMicrokernels attention_microkernels(const FeatureSet& features) {
  if (features.has(Feature::amx)) {
    const DotMicrokernel amx = amx_bf16_microkernel();
    return {.scores_of_fp32 = amx,
            .scores_of_bf16 = amx,
            .values = amx,
            .int16_scores = false,
            .tile_rows = 32,
            .tile_groups = 16};
  }
  const DotMicrokernel bf16 = bf16_microkernel();
  return {.scores_of_fp32 = int16_microkernel(),
          .scores_of_bf16 = bf16,
          .values = bf16,
          .int16_scores = true,
          .tile_rows = 12};
}

template <>
void attention_in_bf16(const AttentionArgsOf<float>& args, const AttentionMicrokernels& microkernels) {
  attend_all<float>(args, microkernels, &VITRAIL_DISPATCH(pack_float_head), &VITRAIL_DISPATCH(attend_float));
}
template <>
void attention_in_bf16(const AttentionArgsOf<BFloat16>& args, const AttentionMicrokernels& microkernels) {
  attend_all<BFloat16>(args, microkernels, &VITRAIL_DISPATCH(pack_narrow_head), &VITRAIL_DISPATCH(attend_narrow));
}

}  // namespace vitrail::kernels
#endif
