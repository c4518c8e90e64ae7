// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scaled dot-product attention (Vaswani et al. 2017, eq. 1) that never holds all scores at once.
#include <cstdint>

#include "vitrail/kernels/gemm/linear.h"

namespace vitrail::kernels {

// A [batch, heads, tokens, dim] operand: the last axis is contiguous, the others have strides in elements.  Heads may
// be views of a fused [B, N, 3, H, D] projection: no copy is needed.
template <class T>
struct HeadView {
  T* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, token_stride = 0;
};

// Added to the scores, [B|1, H|1, T, S] by strides of 0; the last axis is contiguous.  −∞ masks a key.
struct ScoreBias {
  const float* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, query_stride = 0;
};

// Decomposed relative positions (Li et al. 2022, "MViTv2", eq. 4) of tokens that are the cells of a grid, row by row:
// query (y, x) and key (v, u) get q·rows[y − v + height − 1] + q·columns[x − u + width − 1], with q unscaled.
struct RelativePositions {
  int64_t height = 0, width = 0;
  const float* rows = nullptr;     // [2·height − 1, head_dim]; null: no relative positions
  const float* columns = nullptr;  // [2·width − 1, head_dim]
};

// Whether attention() and attention_backward() take operands in bf16, and round to bf16 with Precision::half.
bool attention_multiplies_bf16();

// T is the type of q, k, v and out in memory: float, or BFloat16 if attention_multiplies_bf16().
template <class T>
struct AttentionArgsOf {
  int64_t batch = 0, heads = 0, queries = 0, keys = 0, head_dim = 0;
  HeadView<const T> q{}, k{}, v{};
  HeadView<T> out{};
  float scale = 1;
  ScoreBias bias{};  // data null: none
  // Added to the scores of attention(), in fp32, besides the bias.  attention_backward() and T = BFloat16 ignore them.
  RelativePositions positions{};
  float* weights = nullptr;  // if not null: contiguous [B, H, T, S], receives the softmax
  // half: if attention_multiplies_bf16(), the operands of both GEMMs have 16 bits.  v and the weights are rounded to
  // bf16; q and k are int16, with a scale for each query and one for a head's keys.  Accumulators and the softmax are
  // fp32.  On other processors half is fp32.  int8 is not available.  With T = BFloat16 all operands are bf16.
  Precision precision = Precision::fp32;
};
using AttentionArgs = AttentionArgsOf<float>;

// out = softmax(scale · q kᵀ + bias) v.  A query whose keys are all masked gives zero weights and a zero result.
void attention(const AttentionArgs& args);
void attention(const AttentionArgsOf<BFloat16>& args);

template <class T>
struct AttentionGradArgsOf {
  AttentionArgsOf<T> forward{};              // the arguments of attention(); out and weights are not read
  HeadView<const T> grad{};                  // gradient of out
  HeadView<T> grad_q{}, grad_k{}, grad_v{};  // written
  float* grad_scores = nullptr;  // if not null: contiguous [B, H, T, S], receives the gradient of the biased scores
};
using AttentionGradArgs = AttentionGradArgsOf<float>;

// The gradients of attention().  The weights are computed again; memory grows with a head's scores, not with B or H.
void attention_backward(const AttentionGradArgs& args);
void attention_backward(const AttentionGradArgsOf<BFloat16>& args);

}  // namespace vitrail::kernels
