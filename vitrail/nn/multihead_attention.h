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

// Optional masks and an optional bias of the scores.
struct AttentionMasks {
  // [B, S], any integer or boolean dtype: keys where it is true (non-zero) are ignored.
  Tensor key_padding_mask{};
  // [T, S], [B, 1, T, S] or [B, H, T, S], any integer or boolean dtype: zero (false) = ignore.  This is the opposite of
  // torch.nn.MultiheadAttention's boolean mask, and the rule of scaled_dot_product_attention's.
  Tensor attn_mask{};
  // A floating tensor of one of the same shapes, added to the scaled scores.
  Tensor attn_bias{};
};

struct MultiheadAttentionOutput {
  Tensor out;      // [B, T, D]
  Tensor weights;  // [B, T, S] averaged over heads, or [B, H, T, S]; undefined unless asked for
};

// Multi-head attention (Vaswani et al. 2017, section 3.2.2) with separate query, key and value inputs, masks and
// returned weights.  query [B, T, D], key and value [B, S, D].
// Parameters q_proj, k_proj, v_proj, out_proj (weight [D, D], bias [D]).
// The returned weights are those before dropout, so they are the same in train and eval mode.  A query whose keys are
// all masked has zero weights, so its output is out_proj's bias.
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
