#pragma once
// Scaled dot-product attention (Vaswani et al. 2017, eq. 1) that never holds all scores at once.
#include <cstdint>

namespace vitrail::kernels {

// A [batch, heads, tokens, dim] operand: the last axis is contiguous, the others have strides in elements.  Heads may
// lie inside a fused [B, N, 3, H, D] projection: no copy is needed.
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

struct AttentionArgs {
  int64_t batch = 0, heads = 0, queries = 0, keys = 0, head_dim = 0;
  HeadView<const float> q{}, k{}, v{};
  HeadView<float> out{};
  float scale = 1;
  ScoreBias bias{};          // data null: none
  float* weights = nullptr;  // if not null: contiguous [B, H, T, S], receives the softmax
};

// out = softmax(scale · q kᵀ + bias) v.  A query whose keys are all masked gives zero weights and a zero result.
void attention(const AttentionArgs& args);

struct AttentionGradArgs {
  AttentionArgs forward{};                       // as attention() had it; out and weights are not looked at
  HeadView<const float> grad{};                  // of out
  HeadView<float> grad_q{}, grad_k{}, grad_v{};  // written
  float* grad_scores = nullptr;  // if not null: contiguous [B, H, T, S], receives the gradient of the biased scores
};

// The gradients of attention().  The weights are computed again; memory grows with a head's scores, not with B or H.
void attention_backward(const AttentionGradArgs& args);

}  // namespace vitrail::kernels
