// SPDX-License-Identifier: Apache-2.0
// The gradients of attention, as in attention_backward.cpp, with all five GEMMs in bf16: S, dP and dQ by AMX where it
// is active, dK and dV, whose first operand is transposed, by AVX-512 BF16.  Operands are packed
// in 32-bit K groups of two values (dot_microkernels_internal.h): along the head's dimension for S and dP, along keys
// for dQ, along queries for dK and dV.
#include "vitrail/kernels/attention/attention_heads_internal.h"
#include "vitrail/kernels/gemm/dot_microkernels_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/attention/attention_backward_bf16.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/attention/head_packing-inl.h"
#include "vitrail/kernels/attention/head_softmax-inl.h"

#ifndef VITRAIL_KERNELS_ATTENTION_BACKWARD_BF16_ONCE
#define VITRAIL_KERNELS_ATTENTION_BACKWARD_BF16_ONCE
namespace vitrail::kernels {
namespace {

// The calling thread's memory for one head.  ld = keys and depth = head_dim, both rounded up to whole panels.
struct Bf16GradScratch {
  int32_t *keys_across, *values_across;  // kᵀ (scaled) and vᵀ: [panel][dim_groups][columns]
  int32_t* keys_along;                   // k: [panel][key_groups][columns]
  float *weights, *grad_scores;          // P and dP, then dS: [block][ld]
  float *grad_keys, *grad_values;        // [keys][depth]
  float* accumulators;                   // [block][columns]
  int32_t *queries, *grads;              // q and dO of the block: [block][dim_groups]
  int32_t *queries_along, *grads_along;  // q and dO in panels: [panel][pairs of queries][columns]
  int32_t* grad_score_rows;              // dS: [block][key_groups]
  int32_t* pairs;                        // P or dS: [pairs of queries][ld]
  float* packing;                        // packing_floats(head_dim)
  int64_t ld, depth, block, dim_groups, key_groups;
  DotMicrokernel add_panel, add_transposed;
};

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// rows [count][ld] → to [pairs of rows][ld], two rows in a group, zeros after the last row.
void pair_rows(const float* rows, int64_t count, int64_t ld, int32_t* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < count; r += 2, rows += 2 * ld, to += ld) {
    for (int64_t c = 0; c < ld; c += lanes) {
      const auto high = r + 1 < count ? hn::Load(d, rows + ld + c) : hn::Zero(d);
      hn::Store(pair_groups(d, hn::Load(d, rows + c), high), hn::RebindToSigned<decltype(d)>(), to + c);
    }
  }
}

// to [keys, depth] += rowsᵀ · panels, for rows [queries][ld].
template <class T>
void add_transposed_gemm(const HeadGrad<T>& head, const Bf16GradScratch& scratch, const float* rows, int64_t queries,
                         const int32_t* panels, float* to) {
  const int64_t groups = (queries + 1) / 2;
  pair_rows(rows, queries, scratch.ld, scratch.pairs);
  for (int64_t c = 0; c < head.head_dim; c += kAvx512Columns) {
    scratch.add_transposed({.x = scratch.pairs,
                            .ldx = scratch.ld,
                            .panel = panels + c * groups,
                            .k_groups = groups,
                            .rows = head.keys,
                            .accumulators = to + c,
                            .ld_accumulators = scratch.depth,
                            .columns = head.head_dim - c,
                            .accumulate = true,
                            .transposed_x = true});
  }
}

// accumulators [queries][ld] = x [queries][dim_groups] · panels over the keys.
void multiply_by_keys(const Bf16GradScratch& scratch, const int32_t* x, int64_t queries, int64_t keys,
                      const int32_t* panels, float* accumulators) {
  for (int64_t s = 0; s < keys; s += kAvx512Columns) {
    scratch.add_panel({.x = x,
                       .ldx = scratch.dim_groups,
                       .panel = panels + s * scratch.dim_groups,
                       .k_groups = scratch.dim_groups,
                       .rows = queries,
                       .accumulators = accumulators + s,
                       .ld_accumulators = scratch.ld,
                       .columns = keys - s});
  }
}

template <class T>
void write_query_gradients(const HeadGrad<T>& head, const Bf16GradScratch& scratch, int64_t first, int64_t queries) {
  for (int64_t e = 0; e < head.head_dim; e += kAvx512Columns) {
    scratch.add_panel({.x = scratch.grad_score_rows,
                       .ldx = scratch.key_groups,
                       .panel = scratch.keys_along + e * scratch.key_groups,
                       .k_groups = scratch.key_groups,
                       .rows = queries,
                       .accumulators = scratch.accumulators,
                       .ld_accumulators = kAvx512Columns,
                       .columns = head.head_dim - e});
    for (int64_t r = 0; r < queries; ++r) {
      scale_out(scratch.accumulators + r * kAvx512Columns, head.scale,
                head.grad_q + (first + r) * head.grad_q_stride + e, std::min(kAvx512Columns, head.head_dim - e));
    }
  }
}

template <class T>
void attend_backward_bf16(const HeadGrad<T>& head, const Bf16GradScratch& scratch, int64_t first, int64_t queries) {
  const T* const q = head.q + first * head.q_stride;
  const T* const grad = head.grad + first * head.grad_stride;
  for (int64_t r = 0; r < queries; ++r) {
    round_to_groups(q + r * head.q_stride, head.head_dim, scratch.queries + r * scratch.dim_groups);
    round_to_groups(grad + r * head.grad_stride, head.head_dim, scratch.grads + r * scratch.dim_groups);
  }
  multiply_by_keys(scratch, scratch.queries, queries, head.keys, scratch.keys_across, scratch.weights);
  multiply_by_keys(scratch, scratch.grads, queries, head.keys, scratch.values_across, scratch.grad_scores);
  for (int64_t r = 0; r < queries; ++r) {
    float* const grad_scores = scratch.grad_scores + r * scratch.ld;
    softmax_row_backward(head, first + r, scratch.weights + r * scratch.ld, grad_scores);
    if (head.grad_scores) std::copy_n(grad_scores, head.keys, head.grad_scores + (first + r) * head.keys);
    round_to_groups(grad_scores, head.keys, scratch.grad_score_rows + r * scratch.key_groups);
  }
  write_query_gradients(head, scratch, first, queries);
  pack_groups_along(q, head.q_stride, queries, head.head_dim, (queries + 1) / 2, scratch.queries_along);
  pack_groups_along(grad, head.grad_stride, queries, head.head_dim, (queries + 1) / 2, scratch.grads_along);
  add_transposed_gemm(head, scratch, scratch.grad_scores, queries, scratch.queries_along, scratch.grad_keys);
  add_transposed_gemm(head, scratch, scratch.weights, queries, scratch.grads_along, scratch.grad_values);
}

template <class T>
void head_backward_bf16(const HeadGrad<T>& head, const Bf16GradScratch& scratch) {
  pack_groups_across(head.k, head.k_stride, head.keys, head.head_dim, head.scale, scratch.packing, scratch.keys_across);
  pack_groups_across(head.v, head.v_stride, head.keys, head.head_dim, 1.0f, scratch.packing, scratch.values_across);
  pack_groups_along(head.k, head.k_stride, head.keys, head.head_dim, scratch.key_groups, scratch.keys_along);
  std::fill_n(scratch.grad_keys, head.keys * scratch.depth, 0.0f);
  std::fill_n(scratch.grad_values, head.keys * scratch.depth, 0.0f);
  for (int64_t query = 0; query < head.queries; query += scratch.block) {
    attend_backward_bf16(head, scratch, query, std::min(scratch.block, head.queries - query));
  }
  for (int64_t s = 0; s < head.keys; ++s) {
    scale_out(scratch.grad_keys + s * scratch.depth, head.scale, head.grad_k + s * head.grad_k_stride, head.head_dim);
    scale_out(scratch.grad_values + s * scratch.depth, 1.0f, head.grad_v + s * head.grad_v_stride, head.head_dim);
  }
}

// Dispatched kernels are no templates.
void float_head_backward(const HeadGrad<float>& head, const Bf16GradScratch& scratch) {
  head_backward_bf16(head, scratch);
}
void narrow_head_backward(const HeadGrad<BFloat16>& head, const Bf16GradScratch& scratch) {
  head_backward_bf16(head, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/kernels/isa/thread_scratch_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(float_head_backward, nullptr);
VITRAIL_EXPORT(narrow_head_backward, nullptr);

// Partitions the calling thread's scratch into the arrays of one head, each a multiple of a cache line.
template <class T>
Bf16GradScratch bf16_scratch_for(const AttentionArgsOf<T>& args) {
  Bf16GradScratch s{};
  s.ld = round_up(args.keys, kAvx512Columns);
  s.depth = round_up(args.head_dim, kAvx512Columns);
  s.dim_groups = (args.head_dim + 1) / 2;
  s.key_groups = (args.keys + 1) / 2;
  s.add_panel = attention_microkernels(active_features()).values;
  s.add_transposed = bf16_microkernel();
  s.block = gradient_block(args.queries, s.ld);
  const int64_t block_groups = (s.block + 1) / 2, across = s.ld * s.dim_groups, along = s.key_groups * s.depth,
                grads = args.keys * s.depth, scores = s.block * s.ld;
  const int64_t extents[] = {across,
                             across,
                             along,
                             scores,
                             scores,
                             grads,
                             grads,
                             s.block * kAvx512Columns,
                             s.block * s.dim_groups,
                             s.block * s.dim_groups,
                             block_groups * s.depth,
                             block_groups * s.depth,
                             s.block * s.key_groups,
                             block_groups * s.ld,
                             packing_floats(args.head_dim)};
  int64_t total = 0;
  for (const int64_t extent : extents) total += round_up(extent, 16);
  float* at = thread_scratch(total);
  const int64_t* extent = extents;
  auto take = [&] { return std::exchange(at, at + round_up(*extent++, 16)); };
  auto take_groups = [&] { return reinterpret_cast<int32_t*>(take()); };
  s.keys_across = take_groups();
  s.values_across = take_groups();
  s.keys_along = take_groups();
  s.weights = take();
  s.grad_scores = take();
  s.grad_keys = take();
  s.grad_values = take();
  s.accumulators = take();
  s.queries = take_groups();
  s.grads = take_groups();
  s.queries_along = take_groups();
  s.grads_along = take_groups();
  s.grad_score_rows = take_groups();
  s.pairs = take_groups();
  s.packing = take();
  return s;
}

}  // namespace

template <>
void attention_backward_in_bf16(const AttentionGradArgsOf<float>& args) {
  for_each_head_gradient(args, &VITRAIL_DISPATCH(float_head_backward), [&] { return bf16_scratch_for(args.forward); });
}
template <>
void attention_backward_in_bf16(const AttentionGradArgsOf<BFloat16>& args) {
  for_each_head_gradient(args, &VITRAIL_DISPATCH(narrow_head_backward), [&] { return bf16_scratch_for(args.forward); });
}

}  // namespace vitrail::kernels
#endif
