// SPDX-License-Identifier: Apache-2.0
// The gradients of attention: the weights are computed again, block by block, instead of having been kept.
//   S = scale · q kᵀ + bias, P = softmax(S), dV = Pᵀ dO, dP = dO vᵀ, dS = P ⊙ (dP − rowsum(P ⊙ dP)),
//   dq = scale · dS k, dk = scale · dSᵀ q.
// A thread takes one head; a block of queries' P and dP stay in its second-level cache between the five products.
#include "vitrail/kernels/attention/attention_heads_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/attention/attention_backward.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/attention/head_panels-inl.h"
#include "vitrail/kernels/attention/head_softmax-inl.h"
#include "vitrail/kernels/gemm/fp32_microkernel-inl.h"

#ifndef VITRAIL_KERNELS_ATTENTION_BACKWARD_ONCE
#define VITRAIL_KERNELS_ATTENTION_BACKWARD_ONCE
namespace vitrail::kernels {
namespace {

// A thread's own memory for one head.  ld = keys rounded up to whole panels, depth = head_dim so.
struct HeadGradScratch {
  float *keys_across, *values_across;  // kᵀ (scaled) and vᵀ in panels: [panel][head_dim][panel columns]
  float* keys_along;                   // k in panels: [panel][keys][panel columns]
  float *queries, *grads;              // q and dO of the block in panels: [panel][block][panel columns]
  float *weights, *grad_weights;       // P and dP, then dS: [block][ld]
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

// to [rows of aᵀ, columns] += aᵀ · panels, for a [depth, rows].  Columns of `to` after the last are padding.
void add_transposed_gemm(const float* a, int64_t lda, int64_t rows, int64_t depth, const float* panels, int64_t columns,
                         float* to, int64_t ld) {
  const int64_t width = panel_columns();
  for (int64_t c = 0; c < columns; c += width) {
    multiply_part<true>(a, lda, panels + c * depth, depth, rows, columns - c, StoredAccumulators<true>{to + c, ld});
  }
}

void attend_backward(const HeadGrad<float>& head, const HeadGradScratch& scratch, int64_t first, int64_t queries) {
  const int64_t width = panel_columns(), dim = head.head_dim;
  const float* const q = head.q + first * head.q_stride;
  const float* const grad = head.grad + first * head.grad_stride;
  for (int64_t s = 0; s < head.keys; s += width) {
    multiply_part(q, head.q_stride, scratch.keys_across + s * dim, dim, queries, head.keys - s,
                  StoredAccumulators<false>{scratch.weights + s, scratch.ld});
    multiply_part(grad, head.grad_stride, scratch.values_across + s * dim, dim, queries, head.keys - s,
                  StoredAccumulators<false>{scratch.grad_weights + s, scratch.ld});
  }
  for (int64_t r = 0; r < queries; ++r) {
    softmax_row_backward(head, first + r, scratch.weights + r * scratch.ld, scratch.grad_weights + r * scratch.ld);
    if (head.grad_scores) {
      std::copy_n(scratch.grad_weights + r * scratch.ld, head.keys, head.grad_scores + (first + r) * head.keys);
    }
  }
  for (int64_t e = 0; e < dim; e += width) {
    const int64_t columns = std::min(width, dim - e);
    multiply_part(
        scratch.grad_weights, scratch.ld, scratch.keys_along + e * head.keys, head.keys, queries, columns,
        ScaledAccumulators{&head.scale, 0, head.grad_q + first * head.grad_q_stride + e, head.grad_q_stride, columns});
  }
  pack_along(q, head.q_stride, queries, dim, scratch.queries);
  pack_along(grad, head.grad_stride, queries, dim, scratch.grads);
  add_transposed_gemm(scratch.grad_weights, scratch.ld, head.keys, queries, scratch.queries, dim, scratch.grad_keys,
                      scratch.depth);
  add_transposed_gemm(scratch.weights, scratch.ld, head.keys, queries, scratch.grads, dim, scratch.grad_values,
                      scratch.depth);
}

void head_backward(const HeadGrad<float>& head, const HeadGradScratch& scratch) {
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
#include <stdexcept>
#include <utility>

#include "vitrail/kernels/attention/scalar_attention_internal.h"
#include "vitrail/kernels/isa/thread_scratch_internal.h"

namespace vitrail::kernels {
namespace {

// The scalar reference takes the head as it is, one query at a time.
int64_t scalar_panel_columns() { return 1; }
void scalar_head_backward(const HeadGrad<float>& head, const HeadGradScratch& scratch) {
  for (int64_t s = 0; s < head.keys; ++s) {
    std::fill_n(head.grad_k + s * head.grad_k_stride, head.head_dim, 0.0f);
    std::fill_n(head.grad_v + s * head.grad_v_stride, head.head_dim, 0.0f);
  }
  for (int64_t t = 0; t < head.queries; ++t) {
    const float* const q = head.q + t * head.q_stride;
    scalar::attention_weights(q, head.k, head.k_stride, head.keys, head.head_dim, head.scale,
                              head.bias ? head.bias + t * head.bias_stride : nullptr, scratch.weights);
    scalar::attention_row_backward(q, head.k, head.k_stride, head.v, head.v_stride, head.keys, head.head_dim,
                                   head.scale, scratch.weights, head.grad + t * head.grad_stride, scratch.grad_weights,
                                   head.grad_q + t * head.grad_q_stride, head.grad_k, head.grad_k_stride, head.grad_v,
                                   head.grad_v_stride);
    if (head.grad_scores) std::copy_n(scratch.grad_weights, head.keys, head.grad_scores + t * head.keys);
  }
}

VITRAIL_EXPORT(gradient_panel_columns, scalar_panel_columns);
VITRAIL_EXPORT(head_backward, scalar_head_backward);

// Cuts the calling thread's scratch into the extents that one head needs.
HeadGradScratch scratch_for(const AttentionArgs& args, int64_t width) {
  HeadGradScratch s{};
  s.ld = round_up(args.keys, width);
  s.depth = round_up(args.head_dim, width);
  s.block = gradient_block(args.queries, s.ld);
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
  s.grad_weights = take(scores);
  return s;
}

// Without keys or without queries, no operand has a part in the output.
template <class T>
void clear_gradients(const AttentionGradArgsOf<T>& args) {
  const AttentionArgsOf<T>& forward = args.forward;
  for (int64_t pair = 0; pair < forward.batch * forward.heads; ++pair) {
    const HeadGrad<T> head = head_of(args, pair);
    for (int64_t t = 0; t < head.queries; ++t) std::fill_n(head.grad_q + t * head.grad_q_stride, head.head_dim, T());
    for (int64_t s = 0; s < head.keys; ++s) {
      std::fill_n(head.grad_k + s * head.grad_k_stride, head.head_dim, T());
      std::fill_n(head.grad_v + s * head.grad_v_stride, head.head_dim, T());
    }
  }
}

}  // namespace

void attention_backward(const AttentionGradArgs& args) {
  const int64_t width = VITRAIL_DISPATCH(gradient_panel_columns)();
  auto* const backward = &VITRAIL_DISPATCH(head_backward);
  const AttentionArgs& forward = args.forward;
  if (forward.queries == 0 || forward.keys == 0) return clear_gradients(args);
  if (forward.precision == Precision::half && attention_multiplies_bf16()) {
    return attention_backward_in_bf16(args);
  }
  for_each_head_gradient(args, backward, [&] { return scratch_for(forward, width); });
}

void attention_backward(const AttentionGradArgsOf<BFloat16>& args) {
  if (!attention_multiplies_bf16()) throw std::logic_error("attention of bf16 needs AVX-512 BF16");
  if (args.forward.queries == 0 || args.forward.keys == 0) return clear_gradients(args);
  attention_backward_in_bf16(args);
}

}  // namespace vitrail::kernels
#endif
