// Attention by blocks, as in attention.cpp, with both products by AVX-512 BF16: their operands are rounded and lie in
// words of two numbers along what is summed over (word_panel.h), the head's dimension first, then the keys.
#include <cmath>

#include "vitrail/kernels/attention_heads.h"
#include "vitrail/kernels/word_panel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/attention_bf16.cpp"
#include "vitrail/kernels/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/head_softmax-inl.h"
#include "vitrail/kernels/head_words-inl.h"
#include "vitrail/kernels/vector_math-inl.h"

#ifndef VITRAIL_KERNELS_ATTENTION_BF16_ONCE
#define VITRAIL_KERNELS_ATTENTION_BF16_ONCE
namespace vitrail::kernels {
namespace {

constexpr int64_t kWordsBehind = 16;  // a vector's, that a row of weights may be written beyond its end

// A thread's own memory for one head and one block of queries.  Panels have kAvx512Columns.
struct Bf16HeadScratch {
  int32_t* keys;     // scaled kᵀ in panels: [panel][dim_words][columns]
  int32_t* values;   // v in panels: [panel][key_words][columns], two keys to a word
  float* scores;     // [queries][ld_scores], ld_scores = keys rounded up to whole panels
  float* sums;       // [queries][columns]
  int32_t* queries;  // [queries][dim_words]
  int32_t* weights;  // [queries][key_words], room behind them
  float* inverses;   // [queries]: 1 / the sum of a row's exponentials
  float* packing;    // packing_floats(head_dim)
  int64_t ld_scores, dim_words, key_words;
  WordSums add_panel;
};

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

constexpr float kMostShift = 1e38f;  // its product with log2 e is finite

// e^(x − most) for |most| ≤ kMostShift, to words, and their sum before they are rounded (NaN when x has one). Up to
// kWordsBehind words behind the last are written too; the last has a zero where n is odd.
HWY_INLINE float exp_to_words(const float* x, float most, int32_t* words, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> bits_d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr float kLog2e = 1.44269504f;
  const auto log2e = hn::Set(d, kLog2e), shift = hn::Set(d, -most * kLog2e);
  const auto half = hn::Set(bits_d, 0x8000);  // ties go up: nothing here is negative, and the sum of NaN tells of it
  auto* const to = reinterpret_cast<uint16_t*>(words);
  auto sum = hn::Zero(d), more = sum;
  auto power = [&](auto v) HWY_ATTR { return coarse_exp2(d, hn::MulAdd(v, log2e, shift)); };
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
  *inverse = 1.0f / exp_to_words(scores, most, words, head.keys);  // the largest alone is 1
}

template <class T>
HWY_INLINE void pack_bf16(const Head<T>& head, const Bf16HeadScratch& scratch) {
  pack_words_across(head.k, head.k_stride, head.keys, head.head_dim, head.scale, scratch.packing, scratch.keys);
  pack_words_along(head.v, head.v_stride, head.keys, head.head_dim, scratch.values);
}

template <class T>
HWY_INLINE void attend_bf16(const Head<T>& head, const Bf16HeadScratch& scratch, int64_t first, int64_t queries) {
  for (int64_t r = 0; r < queries; ++r) {
    round_to_words(head.q + (first + r) * head.q_stride, head.head_dim, scratch.queries + r * scratch.dim_words);
  }
  for (int64_t s = 0; s < head.keys; s += kAvx512Columns) {
    scratch.add_panel({.x = scratch.queries,
                       .ldx = scratch.dim_words,
                       .panel = scratch.keys + s * scratch.dim_words,
                       .words = scratch.dim_words,
                       .rows = queries,
                       .sums = scratch.scores + s,
                       .ld_sums = scratch.ld_scores,
                       .columns = head.keys - s});
  }
  for (int64_t r = 0; r < queries; ++r) {
    soften_to_words(head, first + r, scratch.scores + r * scratch.ld_scores, scratch.weights + r * scratch.key_words,
                    scratch.inverses + r);
  }
  for (int64_t e = 0; e < head.head_dim; e += kAvx512Columns) {
    scratch.add_panel({.x = scratch.weights,
                       .ldx = scratch.key_words,
                       .panel = scratch.values + e * scratch.key_words,
                       .words = scratch.key_words,
                       .rows = queries,
                       .sums = scratch.sums,
                       .ld_sums = kAvx512Columns,
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
#include "vitrail/kernels/thread_scratch.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(pack_float_head);
VITRAIL_EXPORT(pack_narrow_head);
VITRAIL_EXPORT(attend_float);
VITRAIL_EXPORT(attend_narrow);

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
  Bf16HeadScratch s{.ld_scores = round_up(args.keys, kAvx512Columns),
                    .dim_words = (args.head_dim + 1) / 2,
                    .key_words = (args.keys + 1) / 2,
                    .add_panel = bf16_sums()};
  int64_t total = 0;
  auto take = [&total](int64_t elements) { return std::exchange(total, total + round_up(elements, 16)); };
  const int64_t keys = take(s.ld_scores * s.dim_words),
                values = take(round_up(args.head_dim, kAvx512Columns) * s.key_words),
                scores = take(block * s.ld_scores), sums = take(block * kAvx512Columns),
                queries = take(block * s.dim_words), weights = take(block * s.key_words + kWordsBehind),
                inverses = take(block), packing = take(packing_floats(args.head_dim));
  float* const memory = thread_scratch(total);
  auto words = [memory](int64_t at) { return reinterpret_cast<int32_t*>(memory + at); };
  s.keys = words(keys);
  s.values = words(values);
  s.scores = memory + scores;
  s.sums = memory + sums;
  s.queries = words(queries);
  s.weights = words(weights);
  s.inverses = memory + inverses;
  s.packing = memory + packing;
  return s;
}

template <class T>
void attend_all(const AttentionArgsOf<T>& args, decltype(Bf16Worker<T>::pack_head) pack,
                decltype(Bf16Worker<T>::attend_head) attend) {
  constexpr int64_t kTile = 12;                 // rows of bf16_sums()
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
