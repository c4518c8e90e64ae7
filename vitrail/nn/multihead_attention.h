// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/attention.h"

namespace vitrail::nn {

struct MultiheadAttentionConfig {
  int64_t embed_dim = 0;
  int64_t num_heads = 0;
  double dropout = 0.1;  // on the attention weights, in training
  bool bias = true;
};

// What restricts or shifts the scores.  All optional.
struct AttentionMasks {
  // [B, S], any integer or boolean dtype: a key where it is true (non-zero) is ignored.
  Tensor key_padding_mask;
  // [T, S], [B, 1, T, S] or [B, H, T, S], any integer or boolean dtype: zero (false) = ignore.  This is document 004's
  // rule and the opposite of torch.nn.MultiheadAttention's boolean mask.
  Tensor attn_mask;
  // A floating tensor of one of the same shapes, added to the scaled scores.
  Tensor attn_bias;
};

struct MultiheadAttentionOutput {
  Tensor out;      // [B, T, D]
  Tensor weights;  // [B, T, S] averaged over heads, or [B, H, T, S]; undefined when not asked for
};

// Attention with separate query, key and value inputs, masks and returned weights.  Source: document 004's
// MultiHeadAttention.  Parameters q_proj, k_proj, v_proj, out_proj (weight [D, D], bias [D]).
// query [B, T, D], key and value [B, S, D].  Deviation: the weights that come back are those before dropout, so they
// are the same in train and eval.  A query whose keys are all masked gets zero weights, so its output is out_proj's
// bias.
class MultiheadAttention : public Module {
 public:
  MultiheadAttention(const MultiheadAttentionConfig& config, const ParamSource& params);
  MultiheadAttentionOutput forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const AttentionMasks& masks = {}, bool need_weights = true,
                                   bool average_weights = true) const;
  std::string type() const override { return "MultiheadAttention"; }
  void visit(Visitor& visitor) override;

 private:
  MultiheadAttentionConfig config_;
  Linear q_proj_, k_proj_, v_proj_, out_proj_;
  Dropout dropout_;
};

}  // namespace vitrail::nn
