// SPDX-License-Identifier: Apache-2.0
// Attention by blocks, as in attention.cpp, with both products in 16 bits: their operands are rounded and lie in words
// of two numbers along what is summed over (dot_microkernels_internal.h), the head's dimension first, then the keys.
//
// v and the weights are rounded to bf16.  So are q and k that lie in memory so; those in fp32 become whole numbers of
// 16 bits (int16_quantization_internal.h), which keep more of them in the same time, with a step for each query and one
// for a head's keys. In a simulation of DeiT-Tiny with all else exact, attention puts the logits 0.23 % off by bf16,
// and 0.11 where q and k are exact.
#include <cmath>
#include <type_traits>

#include "vitrail/kernels/attention/attention_heads_internal.h"
#include "vitrail/kernels/gemm/dot_microkernels_internal.h"
#include "vitrail/kernels/gemm/int16_quantization_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/attention/attention_bf16.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/attention/head_packing-inl.h"
#include "vitrail/kernels/attention/head_softmax-inl.h"
#include "vitrail/kernels/gemm/int16_rows-inl.h"
#include "vitrail/kernels/isa/vector_math-inl.h"

#ifndef VITRAIL_KERNELS_ATTENTION_BF16_ONCE
#define VITRAIL_KERNELS_ATTENTION_BF16_ONCE
namespace vitrail::kernels {
namespace {

constexpr int64_t kWordsBehind = 16;  // a vector's, that a row of weights may be written beyond its end

// A thread's own memory for one head and one block of queries.  Panels have kAvx512Columns.
struct Bf16HeadScratch {
  int32_t* keys;     // scaled kᵀ in panels: [panel][dim_words][columns]
  int32_t* values;   // v in panels: [panel][key_words][columns], two keys to a word
  float* scores;     // [queries][ld_scores], ld_scores = keys rounded up to whole panels; sums of whole numbers first
  float* sums;       // [queries][columns]
  int32_t* queries;  // [queries][dim_words]
  int32_t* weights;  // [queries][key_words], room behind them
  float* inverses;   // [queries]: 1 / the sum of a row's exponentials
  float* steps;      // [queries] of whole numbers' scores
  float* key_step;   // of the head's keys, times |scale|
  float* packing;    // packing_floats(head_dim)
  float most_steps;  // of a query (int16_quantization_internal.h)
  int64_t ld_scores, dim_words, key_words;
  DotMicrokernel add_scores, add_values;
};

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

constexpr float kMostShift = 1e38f;  // its product with log2 e is finite

// A score from its place in a row: fp32, or the sum of whole numbers.
template <bool whole, class D>
HWY_INLINE hn::Vec<D> score_of(D d, hn::Vec<D> v) {
  if constexpr (whole) v = hn::ConvertTo(d, hn::BitCast(hn::RebindToSigned<D>(), v));
  return v;
}

// e^(step · x − most) for |most| ≤ kMostShift, to words, and their sum before they are rounded (NaN when x has one). Up
// to kWordsBehind words behind the last are written too; the last has a zero where n is odd.
template <bool whole>
HWY_INLINE float exp_to_words(const float* x, float step, float most, int32_t* words, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> bits_d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr float kLog2e = 1.44269504f;
  const auto log2e = hn::Set(d, step * kLog2e), shift = hn::Set(d, -most * kLog2e);
  const auto half = hn::Set(bits_d, 0x8000);  // ties go up: nothing here is negative, and the sum of NaN tells of it
  auto* const to = reinterpret_cast<uint16_t*>(words);
  auto sum = hn::Zero(d), more = sum;
  auto power = [&](auto v) HWY_ATTR { return coarse_exp2(d, hn::MulAdd(score_of<whole>(d, v), log2e, shift)); };
  auto power_of_part = [&](int64_t c) HWY_ATTR {  // of what there is; 0 beyond it
    const int64_t left = n - c;
    if (left >= lanes) return power(hn::LoadU(d, x + c));
    if (left <= 0) return hn::Zero(d);
    return hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(left)), power(load_first(d, x + c, left)));
  };
  auto store = [&](auto low, auto high, int64_t c) HWY_ATTR {
    sum = hn::Add(sum, low);
    more = hn::Add(more, high);
    store_upper_halves(bits_d, hn::Add(hn::BitCast(bits_d, low), half), hn::Add(hn::BitCast(bits_d, high), half),
                       to + c);
  };
  int64_t c = 0;
  for (; c + 2 * lanes <= n; c += 2 * lanes) {
    store(power(hn::LoadU(d, x + c)), power(hn::LoadU(d, x + c + lanes)), c);
  }
  if (c < n) store(power_of_part(c), power_of_part(c + lanes), c);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, more)));
}

// Scores to exponentials in words, and to weights where they are asked for.
template <class T>
HWY_INLINE void soften_to_words(const Head<T>& head, int64_t query, float* scores, int32_t* words, float* inverse) {
  if (head.weights) {
    soften_row(head, query, scores, inverse);
    return round_to_words(scores, head.keys, words);
  }
  if (head.bias) add_row(head.bias + query * head.bias_stride, scores, head.keys);
  const float most = row_max(scores, head.keys);
  if (!(std::abs(most) <= kMostShift)) {  // all masked, or not finite
    const float sum = exp_row(scores, most, scores, head.keys);
    *inverse = sum == 0 ? 0.0f : 1.0f / sum;
    return round_to_words(scores, head.keys, words);
  }
  *inverse = 1.0f / exp_to_words<false>(scores, 1, most, words, head.keys);  // the largest alone is 1
}

HWY_INLINE int32_t most_of_whole(const float* sums, int64_t n) {
  const hn::ScalableTag<int32_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* const x = reinterpret_cast<const int32_t*>(sums);
  auto most = hn::Set(d, x[0]);
  int64_t c = 0;
  for (; c + lanes <= n; c += lanes) most = hn::Max(most, hn::LoadU(d, x + c));
  int32_t result = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; c < n; ++c) result = std::max(result, x[c]);
  return result;
}

HWY_INLINE void scale_whole(float* sums, float step, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, step);
  int64_t c = 0;
  for (; c + lanes <= n; c += lanes) {
    hn::StoreU(hn::Mul(factor, score_of<true>(d, hn::LoadU(d, sums + c))), d, sums + c);
  }
  if (c < n) store_first(d, hn::Mul(factor, score_of<true>(d, load_first(d, sums + c, n - c))), sums + c, n - c);
}

// The same of sums of whole numbers with a step.
HWY_INLINE void soften_whole_to_words(const Head<float>& head, int64_t query, float* sums, float step, int32_t* words,
                                      float* inverse) {
  if (!head.weights && !head.bias && head.keys > 0) {
    const float most = step * static_cast<float>(most_of_whole(sums, head.keys));
    if (std::abs(most) <= kMostShift) {
      *inverse = 1.0f / exp_to_words<true>(sums, step, most, words, head.keys);
      return;
    }
  }
  scale_whole(sums, step, head.keys);
  soften_to_words(head, query, sums, words, inverse);
}

// The step of a row that has the largest of each column's numbers, which no row is longer than.  NaN when a number is
// not finite.  `packing` has `columns` floats.
HWY_INLINE float int16_step_of_all(const float* rows, int64_t stride, int64_t count, int64_t columns, float* packing) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> bits_d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto magnitude = hn::Set(bits_d, 0x7fffffff);
  for (int64_t c = 0; c < columns; c += lanes) {
    const int64_t left = columns - c;
    auto most = hn::Zero(bits_d);  // as whole numbers NaN and infinity are the largest
    for (int64_t r = 0; r < count; ++r) {
      most = hn::Max(most, hn::And(hn::BitCast(bits_d, load_wide(d, rows + r * stride + c, left)), magnitude));
    }
    left >= lanes ? hn::StoreU(hn::BitCast(d, most), d, packing + c)
                  : store_first(d, hn::BitCast(d, most), packing + c, left);
  }
  return int16_scale(packing, columns, max_int16_norm(columns));
}

HWY_INLINE void pack_keys(const Head<float>& head, const Bf16HeadScratch& scratch) {
  const float step = int16_step_of_all(head.k, head.k_stride, head.keys, head.head_dim, scratch.packing);
  *scratch.key_step = step * std::abs(head.scale);
  const auto round = [&](const float* row, int32_t* words) HWY_ATTR {
    if (head.head_dim % 2 != 0) words[head.head_dim / 2] = 0;
    quantize_int16(row, head.head_dim, std::copysign(step, head.scale), reinterpret_cast<int16_t*>(words));
  };
  pack_rounded_across(head.k, head.k_stride, head.keys, head.head_dim, round,
                      reinterpret_cast<int32_t*>(scratch.packing), scratch.keys);
}
HWY_INLINE void pack_keys(const Head<BFloat16>& head, const Bf16HeadScratch& scratch) {
  pack_words_across(head.k, head.k_stride, head.keys, head.head_dim, head.scale, scratch.packing, scratch.keys);
}

HWY_INLINE void round_query(const Head<float>& head, int64_t query, int64_t r, const Bf16HeadScratch& scratch) {
  int32_t* const words = scratch.queries + r * scratch.dim_words;
  if (head.head_dim % 2 != 0) words[head.head_dim / 2] = 0;
  const float step = quantize_int16_row(head.q + query * head.q_stride, head.head_dim, scratch.most_steps,
                                        reinterpret_cast<int16_t*>(words));
  scratch.steps[r] = *scratch.key_step * step;
}
HWY_INLINE void round_query(const Head<BFloat16>& head, int64_t query, int64_t r, const Bf16HeadScratch& scratch) {
  round_to_words(head.q + query * head.q_stride, head.head_dim, scratch.queries + r * scratch.dim_words);
}

HWY_INLINE void softmax_row(const Head<float>& head, int64_t query, int64_t r, const Bf16HeadScratch& scratch) {
  soften_whole_to_words(head, query, scratch.scores + r * scratch.ld_scores, scratch.steps[r],
                        scratch.weights + r * scratch.key_words, scratch.inverses + r);
}
HWY_INLINE void softmax_row(const Head<BFloat16>& head, int64_t query, int64_t r, const Bf16HeadScratch& scratch) {
  soften_to_words(head, query, scratch.scores + r * scratch.ld_scores, scratch.weights + r * scratch.key_words,
                  scratch.inverses + r);
}

template <class T>
HWY_INLINE void pack_bf16(const Head<T>& head, const Bf16HeadScratch& scratch) {
  pack_keys(head, scratch);
  pack_words_along(head.v, head.v_stride, head.keys, head.head_dim, scratch.values);
}

template <class T>
HWY_INLINE void attend_bf16(const Head<T>& head, const Bf16HeadScratch& scratch, int64_t first, int64_t queries) {
  for (int64_t r = 0; r < queries; ++r) round_query(head, first + r, r, scratch);
  for (int64_t s = 0; s < head.keys; s += kAvx512Columns) {
    scratch.add_scores({.x = scratch.queries,
                        .ldx = scratch.dim_words,
                        .panel = scratch.keys + s * scratch.dim_words,
                        .k_groups = scratch.dim_words,
                        .rows = queries,
                        .accumulators = scratch.scores + s,
                        .ld_accumulators = scratch.ld_scores,
                        .columns = head.keys - s});
  }
  for (int64_t r = 0; r < queries; ++r) softmax_row(head, first + r, r, scratch);
  for (int64_t e = 0; e < head.head_dim; e += kAvx512Columns) {
    scratch.add_values({.x = scratch.weights,
                        .ldx = scratch.key_words,
                        .panel = scratch.values + e * scratch.key_words,
                        .k_groups = scratch.key_words,
                        .rows = queries,
                        .accumulators = scratch.sums,
                        .ld_accumulators = kAvx512Columns,
                        .columns = head.head_dim - e});
    for (int64_t r = 0; r < queries; ++r) {
      scale_out(scratch.sums + r * kAvx512Columns, scratch.inverses[r], head.out + (first + r) * head.out_stride + e,
                std::min(kAvx512Columns, head.head_dim - e));
    }
  }
}

// What is dispatched is no template.
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

VITRAIL_EXPORT(pack_float_head, nullptr);
VITRAIL_EXPORT(pack_narrow_head, nullptr);
VITRAIL_EXPORT(attend_float, nullptr);
VITRAIL_EXPORT(attend_narrow, nullptr);

template <class T>
struct Bf16Worker {
  void (*pack_head)(const Head<T>&, const Bf16HeadScratch&);
  void (*attend_head)(const Head<T>&, const Bf16HeadScratch&, int64_t, int64_t);
  Bf16HeadScratch scratch;

  void pack(const Head<T>& head) const { pack_head(head, scratch); }
  void attend(const Head<T>& head, int64_t first, int64_t queries) const { attend_head(head, scratch, first, queries); }
};

// The calling thread's memory, in parts that begin where vectors do.
template <class T>
Bf16HeadScratch bf16_scratch(const AttentionArgsOf<T>& args, int64_t block) {
  Bf16HeadScratch s{.most_steps = max_int16_norm(args.head_dim),
                    .ld_scores = round_up(args.keys, kAvx512Columns),
                    .dim_words = (args.head_dim + 1) / 2,
                    .key_words = (args.keys + 1) / 2,
                    .add_scores = std::is_same_v<T, float> ? int16_microkernel() : bf16_microkernel(),
                    .add_values = bf16_microkernel()};
  int64_t total = 0;
  auto take = [&total](int64_t elements) { return std::exchange(total, total + round_up(elements, 16)); };
  const int64_t keys = take(s.ld_scores * s.dim_words),
                values = take(round_up(args.head_dim, kAvx512Columns) * s.key_words),
                scores = take(block * s.ld_scores), sums = take(block * kAvx512Columns),
                queries = take(block * s.dim_words), weights = take(block * s.key_words + kWordsBehind),
                inverses = take(block), steps = take(block), key_step = take(1),
                packing = take(packing_floats(args.head_dim));
  float* const memory = thread_scratch(total);
  auto words = [memory](int64_t at) { return reinterpret_cast<int32_t*>(memory + at); };
  s.keys = words(keys);
  s.values = words(values);
  s.scores = memory + scores;
  s.sums = memory + sums;
  s.queries = words(queries);
  s.weights = words(weights);
  s.inverses = memory + inverses;
  s.steps = memory + steps;
  s.key_step = memory + key_step;
  s.packing = memory + packing;
  return s;
}

template <class T>
void attend_all(const AttentionArgsOf<T>& args, decltype(Bf16Worker<T>::pack_head) pack,
                decltype(Bf16Worker<T>::attend_head) attend) {
  constexpr int64_t kTile = 12;                 // rows of bf16_microkernel()
  constexpr int64_t kScoreElements = 20 << 10;  // 80 KiB in fp32, and half of it rounded: an eighth of L2
  const int64_t ld_scores = round_up(args.keys, kAvx512Columns);
  const int64_t block = std::max<int64_t>(1, kScoreElements / (ld_scores + 1) / kTile) * kTile;
  for_each_attention_task(args, kTile, 400000, [&](uint64_t call, int64_t first, int64_t last) {
    const Bf16Worker<T> worker{pack, attend, bf16_scratch(args, block)};
    attend_by_blocks(args, call, kTile, block, worker, first, last);
  });
}

}  // namespace

template <>
void attention_in_bf16(const AttentionArgsOf<float>& args) {
  attend_all<float>(args, &VITRAIL_DISPATCH(pack_float_head), &VITRAIL_DISPATCH(attend_float));
}
template <>
void attention_in_bf16(const AttentionArgsOf<BFloat16>& args) {
  attend_all<BFloat16>(args, &VITRAIL_DISPATCH(pack_narrow_head), &VITRAIL_DISPATCH(attend_narrow));
}

}  // namespace vitrail::kernels
#endif
