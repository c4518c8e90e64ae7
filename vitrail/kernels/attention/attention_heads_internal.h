// SPDX-License-Identifier: Apache-2.0
#pragma once
// How attention and its gradients partition their work among threads.
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "vitrail/base/parallel.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/attention/attention.h"
#include "vitrail/kernels/gemm/dot_microkernels_internal.h"
#include "vitrail/kernels/isa/isa.h"

namespace vitrail::kernels {

// The operands of one (batch, head) pair.  Each is [tokens, head_dim] with a stride between tokens, in elements.
template <class T>
struct Head {
  const T *q, *k, *v;
  T* out;
  const float* bias;  // [queries, keys], may be null
  float* weights;     // [queries, keys], may be null
  int64_t q_stride, k_stride, v_stride, bias_stride, out_stride;
  int64_t queries, keys, head_dim;
  float scale;
  RelativePositions positions;
};

// Where (batch, head) pair `pair` begins; null if the operand is absent.
template <class View>
auto head_start(const View& view, int64_t pair, int64_t heads) -> decltype(view.data) {
  return view.data ? view.data + pair / heads * view.batch_stride + pair % heads * view.head_stride : nullptr;
}

template <class T>
Head<T> head_of(const AttentionArgsOf<T>& args, int64_t pair) {
  return {.q = head_start(args.q, pair, args.heads),
          .k = head_start(args.k, pair, args.heads),
          .v = head_start(args.v, pair, args.heads),
          .out = head_start(args.out, pair, args.heads),
          .bias = head_start(args.bias, pair, args.heads),
          .weights = args.weights ? args.weights + pair * args.queries * args.keys : nullptr,
          .q_stride = args.q.token_stride,
          .k_stride = args.k.token_stride,
          .v_stride = args.v.token_stride,
          .bias_stride = args.bias.query_stride,
          .out_stride = args.out.token_stride,
          .queries = args.queries,
          .keys = args.keys,
          .head_dim = args.head_dim,
          .scale = args.scale,
          .positions = args.positions};
}

// The operands of the gradients of one pair: those of the forward pass, whose out and weights are not used, and more.
template <class T>
struct HeadGrad : Head<T> {
  const T* grad = nullptr;  // the gradient of out
  T *grad_q = nullptr, *grad_k = nullptr, *grad_v = nullptr;
  float* grad_scores = nullptr;  // [queries, keys], may be null
  int64_t grad_stride = 0, grad_q_stride = 0, grad_k_stride = 0, grad_v_stride = 0;
};

template <class T>
HeadGrad<T> head_of(const AttentionGradArgsOf<T>& args, int64_t pair) {
  const AttentionArgsOf<T>& forward = args.forward;
  HeadGrad<T> head{head_of(forward, pair)};
  head.grad = head_start(args.grad, pair, forward.heads);
  head.grad_q = head_start(args.grad_q, pair, forward.heads);
  head.grad_k = head_start(args.grad_k, pair, forward.heads);
  head.grad_v = head_start(args.grad_v, pair, forward.heads);
  if (args.grad_scores) head.grad_scores = args.grad_scores + pair * forward.queries * forward.keys;
  head.grad_stride = args.grad.token_stride;
  head.grad_q_stride = args.grad_q.token_stride;
  head.grad_k_stride = args.grad_k.token_stride;
  head.grad_v_stride = args.grad_v.token_stride;
  return head;
}

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
  const int64_t tiles = ceil_div(args.queries, tile);
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

// The worker of attend_by_blocks(): two dispatched kernels and the memory that they work in.
template <class T, class Scratch>
struct HeadWorker {
  void (*pack_head)(const Head<T>&, const Scratch&);
  void (*attend_head)(const Head<T>&, const Scratch&, int64_t, int64_t);
  Scratch scratch;

  void pack(const Head<T>& head) const { pack_head(head, scratch); }
  void attend(const Head<T>& head, int64_t first, int64_t queries) const { attend_head(head, scratch, first, queries); }
};

// Calls body(number of the call, first task, last task) for all tasks in parallel.  `flops`: the operations that take
// as long as starting the other threads.
template <class T, class Body>
void for_each_attention_task(const AttentionArgsOf<T>& args, int64_t tile, int64_t flops, const Body& body) {
  const int64_t tiles = ceil_div(args.queries, tile), task_flops = 4 * tile * args.keys * args.head_dim;
  const uint64_t call = ++attention_calls;
  parallel_for_balanced(0, args.batch * args.heads * tiles, 1 + flops / (task_flops + 1),
                        [&](int64_t first, int64_t last) { body(call, first, last); });
}

// The queries of a block of the gradients, in tiles of 6 or 12 rows.  P and dP then have 160 KiB each at most, two
// thirds of Zen's L2.  ld_scores: the keys, rounded up to complete panels.
inline int64_t gradient_block(int64_t queries, int64_t ld_scores) {
  constexpr int64_t kTile = 12, kScoreFloats = 40 << 10;
  return std::min(queries, std::max(kTile, kScoreFloats / ld_scores / kTile * kTile));
}

// Calls backward(head, scratch) for every pair in parallel, with the scratch that make_scratch() gives each thread.
template <class T, class Scratch, class MakeScratch>
void for_each_head_gradient(const AttentionGradArgsOf<T>& args, void (*backward)(const HeadGrad<T>&, const Scratch&),
                            const MakeScratch& make_scratch) {
  parallel_for(0, args.forward.batch * args.forward.heads, 1, [&](int64_t first, int64_t last) {
    const Scratch scratch = make_scratch();
    for (int64_t pair = first; pair < last; ++pair) backward(head_of(args, pair), scratch);
  });
}

// The two GEMMs of attention in 16 bits: of fp32 q and k, of bf16 q and k, and of the weights and v in bf16.
struct AttentionMicrokernels {
  DotMicrokernel scores_of_fp32, scores_of_bf16, values;
  bool int16_scores;        // fp32 q and k become int16, else bf16
  int64_t tile_rows;        // A register tile has this many
  int64_t tile_groups = 1;  // K groups that are multiplied at a time
};
// AMX, or AVX-512 with VNNI and BF16.
AttentionMicrokernels attention_microkernels(const FeatureSet& features);

// Attention and its gradients for T = float and BFloat16; Isa::avx512_bf16 must be active.  All GEMM operands are
// rounded to bf16, except fp32 q and k in the forward pass without AMX, which become int16.  Weights that args ask for
// stay fp32.
template <class T>
void attention_in_bf16(const AttentionArgsOf<T>& args, const AttentionMicrokernels& microkernels);
template <class T>
void attention_backward_in_bf16(const AttentionGradArgsOf<T>& args);

}  // namespace vitrail::kernels
