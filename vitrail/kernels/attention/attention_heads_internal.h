// SPDX-License-Identifier: Apache-2.0
#pragma once
// How attention and its gradients deal out their work.  Private to kernels.
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

// The head whose keys and values lie packed in the calling thread's scratch: a part of a call goes on where the
// thread's last one ended, most often in the same head.
struct PackedHead {
  uint64_t call;  // from 1; a number for each call of attention in this process
  int64_t pair;
  bool operator==(const PackedHead&) const = default;
};
inline thread_local PackedHead packed_head{};
inline std::atomic<uint64_t> attention_calls = 0;  // one count for all kinds of attention: they share the scratch

// What a thread needs: pack(head) before a head's first block, then attend(head, first query, queries). Tasks are tiles
// of queries, head after head, so that a thread's stretch is balanced to the tile; `block` is in whole tiles.
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

// By AVX-512 BF16; only where Isa::avx512_bf16 is active.  Round q, k (of float, forward: to whole numbers of 16 bits),
// v and the weights (not those handed out), the gradients dO, P and dS too.  Of float and BFloat16.
template <class T>
void attention_in_bf16(const AttentionArgsOf<T>& args);
template <class T>
void attention_backward_in_bf16(const AttentionGradArgsOf<T>& args);

}  // namespace vitrail::kernels
