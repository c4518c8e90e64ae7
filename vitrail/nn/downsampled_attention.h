// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/attention.h"

namespace vitrail::nn {

struct DownsampledAttentionConfig {
  int64_t embedding_dim = 0;
  int64_t num_heads = 0;
  int64_t downsample_rate = 1;  // the internal width is embedding_dim / downsample_rate
};

// Cross-attention of reduced width: q, k, v [B, n, C] are projected to C/r with r = downsample_rate, attended, and
// projected back to C.  q [B, n_q, C] → [B, n_q, C].  A batch of 1 stands for equal samples, which are projected once.
// Where one side has few tokens, its projections absorb those of the other side (see few_queries()): equal in real
// arithmetic, with less of it.  Training, traces and sessions that have released the weights use the plain formula;
// infer::FunctionOptions::retained_layers keeps them.
// Parameters q_proj, k_proj, v_proj [C/r, C], out_proj [C, C/r], with biases.  Source: Attention of Segment Anything's
// mask decoder (Kirillov et al. 2023).
class DownsampledAttention : public Module {
 public:
  DownsampledAttention(const DownsampledAttentionConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value) const;
  // forward() in two parts, for several calls with the same tokens on one side.  project_*: [B, n, C] → [B, n, C/r].
  Tensor project_query(const Tensor& query) const { return q_proj_.forward(query); }
  Tensor project_key(const Tensor& key) const { return k_proj_.forward(key); }
  Tensor project_value(const Tensor& value) const { return v_proj_.forward(value); }
  Tensor forward_projected_keys(const Tensor& query, const Tensor& k, const Tensor& v) const;
  Tensor forward_projected_query(const Tensor& q, const Tensor& key, const Tensor& value) const;
  std::string type() const override { return "DownsampledAttention"; }
  void visit(Visitor& visitor) override;

 private:
  Tensor heads_for(const Tensor& projected, int64_t batch) const;
  Tensor attend_projected(const Tensor& q, const Tensor& k, const Tensor& v) const;
  bool may_absorb() const;
  bool absorbing_is_cheaper(const Tensor& few, int64_t projections, int64_t width) const;
  Tensor few_queries(const Tensor& query, const Tensor& key, const Tensor& value) const;
  Tensor few_keys(const Tensor& query, const Tensor& q_weight, const Tensor& q_bias, const Tensor& key,
                  const Tensor& value) const;

  int64_t num_heads_, internal_dim_;
  double scale_;
  Linear q_proj_, k_proj_, v_proj_, out_proj_;
};

}  // namespace vitrail::nn
