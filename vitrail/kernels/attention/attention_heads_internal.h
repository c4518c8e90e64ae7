// SPDX-License-Identifier: Apache-2.0
#pragma once
// How attention and its gradients partition their work among threads.
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/attention/attention.h"

namespace vitrail::kernels {

// One (batch, head) with its operands found: what is left of the views are the strides between tokens.
template <class T>
struct Head {
  const T *q, *k, *v;
  T* out;
  const float* bias;  // may be null
  float* weights;     // may be null
  int64_t q_stride, k_stride, v_stride, bias_stride, out_stride;
  int64_t keys, head_dim;
  float scale;
};

template <class T>
Head<T> head_of(const AttentionArgsOf<T>& args, int64_t pair) {
  const int64_t b = pair / args.heads, h = pair % args.heads;
  auto start = [b, h](const auto& view) { return view.data + b * view.batch_stride + h * view.head_stride; };
  return {.q = start(args.q),
          .k = start(args.k),
          .v = start(args.v),
          .out = start(args.out),
          .bias = args.bias.data ? start(args.bias) : nullptr,
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

inline int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// The head whose keys and values are packed in the calling thread's scratch.  A thread's next range of tasks mostly
// begins in the head in which its last range ended.
struct PackedHead {
  uint64_t call;  // number of the attention call in this process, from 1
  int64_t pair;
  bool operator==(const PackedHead&) const = default;
};
inline thread_local PackedHead packed_head{};
inline std::atomic<uint64_t> attention_calls = 0;  // counts calls for every element type: they share the scratch

// Computes tasks [first, last).  A task is one tile of queries of one head; heads follow each other, so that work is
// partitioned at the granularity of tiles.  worker.pack(head) runs before a head's first block, and then
// worker.attend(head, first query, queries) for each block; `block` is a multiple of the tile.
template <class T, class Worker>
void attend_by_blocks(const AttentionArgsOf<T>& args, uint64_t call, int64_t tile, int64_t block, const Worker& worker,
                      int64_t first, int64_t last) {
  const int64_t tiles = (args.queries + tile - 1) / tile;
  while (first < last) {
    const int64_t pair = first / tiles, end = std::min(last, (pair + 1) * tiles);
    const Head<T> head = head_of(args, pair);
    if (packed_head != PackedHead{call, pair}) worker.pack(head);
    packed_head = {call, pair};
    const int64_t last_query = std::min(args.queries, (end - pair * tiles) * tile);
    for (int64_t query = (first - pair * tiles) * tile; query < last_query; query += block) {
      worker.attend(head, query, std::min(block, last_query - query));
    }
    first = end;
  }
}

// Calls body(number of the call, first task, last task) for all of them in parallel.  `flops`: operations that take
// 2 µs, which is what it costs to wake a team.
template <class T, class Body>
void for_each_attention_task(const AttentionArgsOf<T>& args, int64_t tile, int64_t flops, const Body& body) {
  const int64_t tiles = (args.queries + tile - 1) / tile, task_flops = 4 * tile * args.keys * args.head_dim;
  const uint64_t call = ++attention_calls;
  parallel_for_balanced(0, args.batch * args.heads * tiles, 1 + flops / (task_flops + 1),
                        [&](int64_t first, int64_t last) { body(call, first, last); });
}

// The same for the gradients.
template <class T>
struct HeadGrad {
  const T *q, *k, *v, *grad;
  T *grad_q, *grad_k, *grad_v;
  const float* bias;   // may be null
  float* grad_scores;  // [queries, keys], may be null
  int64_t q_stride, k_stride, v_stride, bias_stride, grad_stride, grad_q_stride, grad_k_stride, grad_v_stride;
  int64_t queries, keys, head_dim;
  float scale;
};

template <class T>
HeadGrad<T> head_of(const AttentionGradArgsOf<T>& args, int64_t pair) {
  const AttentionArgsOf<T>& a = args.forward;
  const int64_t b = pair / a.heads, h = pair % a.heads;
  auto start = [b, h](const auto& view) { return view.data + b * view.batch_stride + h * view.head_stride; };
  return {.q = start(a.q),
          .k = start(a.k),
          .v = start(a.v),
          .grad = start(args.grad),
          .grad_q = start(args.grad_q),
          .grad_k = start(args.grad_k),
          .grad_v = start(args.grad_v),
          .bias = a.bias.data ? start(a.bias) : nullptr,
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

// Attention and its gradients with AVX-512 BF16, for T = float and BFloat16; Isa::avx512_bf16 must be active.  All GEMM
// operands are rounded to bf16, except fp32 q and k in the forward pass, which become int16.  Weights that args ask for
// stay fp32.
template <class T>
void attention_in_bf16(const AttentionArgsOf<T>& args);
template <class T>
void attention_backward_in_bf16(const AttentionGradArgsOf<T>& args);

}  // namespace vitrail::kernels
