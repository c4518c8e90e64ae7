// The gradients of attention: the weights are computed again, block by block, instead of having been kept.
//   S = scale · q kᵀ + bias, P = softmax(S), dV = Pᵀ dO, dP = dO vᵀ, dS = P ⊙ (dP − rowsum(P ⊙ dP)),
//   dq = scale · dS k, dk = scale · dSᵀ q.
// A thread takes one head; a block of queries' P and dP stay in its second-level cache between the five products.
#include "vitrail/kernels/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/attention_backward.cpp"
#include "vitrail/kernels/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/head_panels-inl.h"
#include "vitrail/kernels/softmax-inl.h"
#include "vitrail/kernels/tile-inl.h"

#ifndef VITRAIL_KERNELS_ATTENTION_BACKWARD_ONCE
#define VITRAIL_KERNELS_ATTENTION_BACKWARD_ONCE
namespace vitrail::kernels {
namespace {

struct HeadGrad {
  const float *q, *k, *v, *bias, *grad;           // bias may be null
  float *grad_q, *grad_k, *grad_v, *grad_scores;  // grad_scores [queries, keys] may be null
  int64_t q_stride, k_stride, v_stride, bias_stride, grad_stride, grad_q_stride, grad_k_stride, grad_v_stride;
  int64_t queries, keys, head_dim;
  float scale;
};

// A thread's own memory for one head.  ld = keys rounded up to whole panels, depth = head_dim so.
struct HeadGradScratch {
  float *keys_across, *values_across;  // kᵀ (scaled) and vᵀ in panels: [panel][head_dim][panel columns]
  float* keys_along;                   // k in panels: [panel][keys][panel columns]
  float *queries, *grads;              // q and dO of the block in panels: [panel][block][panel columns]
  float *weights, *slopes;             // P and dP, then dS: [block][ld]
  float *grad_keys, *grad_values;      // [keys][depth]
  int64_t ld, depth, block;
};

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

int64_t gradient_panel_columns() { return panel_columns(); }

// Scores to weights, and dP to dS.  What lies beyond the keys is not read afterwards but as zeros of packed panels.
void soften_row_backward(const HeadGrad& head, int64_t query, float* weights, float* slopes) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t keys = head.keys;
  if (head.bias) add_row(head.bias + query * head.bias_stride, weights, keys);
  const float sum = exp_row(weights, row_max(weights, keys), weights, keys);
  scale_row(weights, sum == 0 ? 0.0f : 1.0f / sum, weights, keys);
  auto dots = hn::Zero(d);
  int64_t c = 0;
  for (; c + lanes <= keys; c += lanes) dots = hn::MulAdd(hn::LoadU(d, weights + c), hn::LoadU(d, slopes + c), dots);
  if (c < keys) dots = hn::MulAdd(load_first(d, weights + c, keys - c), load_first(d, slopes + c, keys - c), dots);
  const auto mean = hn::SumOfLanes(d, dots);
  for (c = 0; c + lanes <= keys; c += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, weights + c), hn::Sub(hn::LoadU(d, slopes + c), mean)), d, slopes + c);
  }
  if (const int64_t left = keys - c; left > 0) {
    const auto difference = hn::Sub(load_first(d, slopes + c, left), mean);
    store_first(d, hn::Mul(load_first(d, weights + c, left), difference), slopes + c, left);
  }
}

// to [rows of aᵀ, columns] += aᵀ · panels, for a [depth, rows].
void add_transposed_product(const float* a, int64_t lda, int64_t rows, int64_t depth, const float* panels,
                            int64_t columns, float* to) {
  const int64_t width = panel_columns();
  for (int64_t c = 0; c < columns; c += width) {
    multiply_panel<true>(a, lda, panels + c * depth, depth, rows, StoredSums<true>{to + c, columns});
  }
}

void attend_backward(const HeadGrad& head, const HeadGradScratch& scratch, int64_t first, int64_t queries) {
  const int64_t width = panel_columns(), dim = head.head_dim;
  const float* const q = head.q + first * head.q_stride;
  const float* const grad = head.grad + first * head.grad_stride;
  for (int64_t s = 0; s < head.keys; s += width) {
    multiply_panel(q, head.q_stride, scratch.keys_across + s * dim, dim, queries,
                   StoredSums<false>{scratch.weights + s, scratch.ld});
    multiply_panel(grad, head.grad_stride, scratch.values_across + s * dim, dim, queries,
                   StoredSums<false>{scratch.slopes + s, scratch.ld});
  }
  for (int64_t r = 0; r < queries; ++r) {
    soften_row_backward(head, first + r, scratch.weights + r * scratch.ld, scratch.slopes + r * scratch.ld);
    if (head.grad_scores) {
      std::copy_n(scratch.slopes + r * scratch.ld, head.keys, head.grad_scores + (first + r) * head.keys);
    }
  }
  for (int64_t e = 0; e < dim; e += width) {
    multiply_panel(scratch.slopes, scratch.ld, scratch.keys_along + e * head.keys, head.keys, queries,
                   ScaledSums{&head.scale, 0, head.grad_q + first * head.grad_q_stride + e, head.grad_q_stride,
                              std::min(width, dim - e)});
  }
  pack_along(q, head.q_stride, queries, dim, scratch.queries);
  pack_along(grad, head.grad_stride, queries, dim, scratch.grads);
  add_transposed_product(scratch.slopes, scratch.ld, head.keys, queries, scratch.queries, scratch.depth,
                         scratch.grad_keys);
  add_transposed_product(scratch.weights, scratch.ld, head.keys, queries, scratch.grads, scratch.depth,
                         scratch.grad_values);
}

void head_backward(const HeadGrad& head, const HeadGradScratch& scratch) {
  pack_across(head.k, head.k_stride, head.keys, head.head_dim, head.scale, scratch.keys_across);
  pack_across(head.v, head.v_stride, head.keys, head.head_dim, 1.0f, scratch.values_across);
  pack_along(head.k, head.k_stride, head.keys, head.head_dim, scratch.keys_along);
  std::fill_n(scratch.grad_keys, head.keys * scratch.depth, 0.0f);
  std::fill_n(scratch.grad_values, head.keys * scratch.depth, 0.0f);
  for (int64_t query = 0; query < head.queries; query += scratch.block) {
    attend_backward(head, scratch, query, std::min(scratch.block, head.queries - query));
  }
  for (int64_t s = 0; s < head.keys; ++s) {
    scale_row(scratch.grad_keys + s * scratch.depth, head.scale, head.grad_k + s * head.grad_k_stride, head.head_dim);
    std::copy_n(scratch.grad_values + s * scratch.depth, head.head_dim, head.grad_v + s * head.grad_v_stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <utility>
#include <vector>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/isa.h"
#include "vitrail/kernels/scalar.h"
#include "vitrail/kernels/thread_scratch.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(gradient_panel_columns);
VITRAIL_EXPORT(head_backward);

HeadGrad head_of(const AttentionGradArgs& args, int64_t pair) {
  const AttentionArgs& a = args.forward;
  const int64_t b = pair / a.heads, h = pair % a.heads;
  auto start = [b, h](const auto& view) { return view.data + b * view.batch_stride + h * view.head_stride; };
  return {.q = start(a.q),
          .k = start(a.k),
          .v = start(a.v),
          .bias = a.bias.data ? start(a.bias) : nullptr,
          .grad = start(args.grad),
          .grad_q = start(args.grad_q),
          .grad_k = start(args.grad_k),
          .grad_v = start(args.grad_v),
          .grad_scores = args.grad_scores ? args.grad_scores + pair * a.queries * a.keys : nullptr,
          .q_stride = a.q.token_stride,
          .k_stride = a.k.token_stride,
          .v_stride = a.v.token_stride,
          .bias_stride = a.bias.query_stride,
          .grad_stride = args.grad.token_stride,
          .grad_q_stride = args.grad_q.token_stride,
          .grad_k_stride = args.grad_k.token_stride,
          .grad_v_stride = args.grad_v.token_stride,
          .queries = a.queries,
          .keys = a.keys,
          .head_dim = a.head_dim,
          .scale = a.scale};
}

// Cuts the calling thread's scratch into the pieces that one head needs.
HeadGradScratch scratch_for(const AttentionArgs& args, int64_t width) {
  auto round_up = [width](int64_t n) { return (n + width - 1) / width * width; };
  HeadGradScratch s{};
  s.ld = round_up(args.keys);
  s.depth = round_up(args.head_dim);
  constexpr int64_t kScoreFloats = 40 << 10;  // P and dP: 160 KiB each at most, 2 / 3 of Zen's second-level cache
  s.block = std::min(args.queries, std::max<int64_t>(12, kScoreFloats / s.ld / 12 * 12));  // whole tiles of 6 or 12
  const int64_t across = s.ld * args.head_dim, along = args.keys * s.depth, block = s.block * s.depth,
                scores = s.block * s.ld;
  float* at = thread_scratch(2 * across + 3 * along + 2 * block + 2 * scores);
  auto take = [&at](int64_t floats) { return std::exchange(at, at + floats); };
  s.keys_across = take(across);
  s.values_across = take(across);
  s.keys_along = take(along);
  s.grad_keys = take(along);
  s.grad_values = take(along);
  s.queries = take(block);
  s.grads = take(block);
  s.weights = take(scores);
  s.slopes = take(scores);
  return s;
}

void head_by_reference(const HeadGrad& head) {
  std::vector<float> weights(head.keys), slopes(head.keys), out(head.head_dim);
  for (int64_t s = 0; s < head.keys; ++s) {
    std::fill_n(head.grad_k + s * head.grad_k_stride, head.head_dim, 0.0f);
    std::fill_n(head.grad_v + s * head.grad_v_stride, head.head_dim, 0.0f);
  }
  for (int64_t t = 0; t < head.queries; ++t) {
    const float* const q = head.q + t * head.q_stride;
    scalar::attention_row(q, head.k, head.k_stride, head.v, head.v_stride, head.keys, head.head_dim, head.scale,
                          head.bias ? head.bias + t * head.bias_stride : nullptr, weights.data(), out.data());
    scalar::attention_row_backward(q, head.k, head.k_stride, head.v, head.v_stride, head.keys, head.head_dim,
                                   head.scale, weights.data(), head.grad + t * head.grad_stride, slopes.data(),
                                   head.grad_q + t * head.grad_q_stride, head.grad_k, head.grad_k_stride, head.grad_v,
                                   head.grad_v_stride);
    if (head.grad_scores) std::copy(slopes.begin(), slopes.end(), head.grad_scores + t * head.keys);
  }
}

}  // namespace

void attention_backward(const AttentionGradArgs& args) {
  const bool plain = active_isa() == Isa::scalar;
  const int64_t width = VITRAIL_DISPATCH(gradient_panel_columns)();
  auto* const backward = &VITRAIL_DISPATCH(head_backward);
  const AttentionArgs& forward = args.forward;
  if (forward.queries == 0 || forward.keys == 0) return;
  parallel_for(0, forward.batch * forward.heads, 1, [&](int64_t first, int64_t last) {
    if (plain) {
      for (int64_t pair = first; pair < last; ++pair) head_by_reference(head_of(args, pair));
      return;
    }
    const HeadGradScratch scratch = scratch_for(forward, width);
    for (int64_t pair = first; pair < last; ++pair) backward(head_of(args, pair), scratch);
  });
}

}  // namespace vitrail::kernels
#endif
