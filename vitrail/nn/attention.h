// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/dropout.h"
#include "vitrail/nn/layer_norm.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/relative_position_bias.h"
#include "vitrail/ops/rotary.h"

namespace vitrail::nn {

struct AttentionConfig {
  int64_t dim = 0;
  int64_t num_heads = 8;
  std::optional<int64_t> head_dim = {};  // none: dim / num_heads, which must divide
  bool qkv_bias = false;
  bool k_bias = true;  // false, with qkv_bias: parameters q_bias and v_bias instead of qkv.bias (timm's EvaAttention)
  std::optional<double> qk_scale = {};  // none: head_dim^-0.5
  bool qk_norm = false;                 // LayerNorm on q and k, per head
  bool scale_norm = false;              // LayerNorm on the merged heads, in front of proj
  double norm_eps = 1e-6;               // ε of these norms
  NormLayer norm_layer = NormLayer::layer_norm;
  bool proj_bias = true;
  double attn_drop = 0, proj_drop = 0;
  // A relative position bias with a table of its own: the grid that its table is for (timm's Beit).
  std::optional<std::array<int64_t, 2>> rel_pos_grid = {};
  RelativePositionResampling rel_pos_resampling = RelativePositionResampling::geometric;
  bool split = false;  // parameters query, key, value, out instead of qkv, proj, as in jeonsworld's ViT-pytorch
  ops::RotaryPairs rotary_pairs = ops::RotaryPairs::halves;
  init::Scheme init = init::Scheme::torch;
};

struct AttentionOutput {
  Tensor out;      // [B, N, C]
  Tensor weights;  // [B, H, queries, N] after softmax, before dropout; undefined unless asked for
  Tensor keys;     // [B, H, N, d]; undefined unless asked for
};

// Optional inputs and outputs of forward().
struct AttentionOptions {
  bool need_weights = false, need_keys = false;
  Tensor bias = {};               // added to the scores, broadcast to [B, H, N, N]; undefined: none
  Tensor rotary = {};             // the table of ops::rotary, which rotates q and k; undefined: none
  std::array<int64_t, 2> grid{};  // rows and columns of the patches, for a relative position bias
  int64_t num_queries = 0;        // compute only the first tokens: out is [B, num_queries, C]; 0: all tokens
  // Mean ablation: the context of this head is replaced by its mean over the tokens, before scale_norm and proj.  Needs
  // all queries.
  std::optional<int64_t> ablated_head = {};
};

// Multi-head self-attention (Vaswani et al. 2017; Dosovitskiy et al. 2021, eq. 5–8).  x [B, N, C] → [B, N, C].
// Parameters: qkv.weight [3·H·d, C] (and bias), proj.weight [C, H·d] (and bias); without k_bias q_bias and v_bias [H·d]
// instead of qkv.bias; with rel_pos_grid relative_position_bias_table; with qk_norm q_norm.*, k_norm.* [d]; with
// scale_norm norm.* [H·d]; with split query.*, key.*, value.*, out.* instead of qkv and proj.  Source: timm's Attention
// and EvaAttention. Traced besides the modules: qkv_reshaped [B, N, 3, H, d], qkv_permuted [3, B, H, N, d], rotated q,
// k [B, H, N, d] and v, k_transposed, scores (scaled), weights, context (weights · v), merged.
class Attention : public Module {
 public:
  Attention(const AttentionConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& x) const { return forward(x, AttentionOptions{}).out; }
  AttentionOutput forward(const Tensor& x, const AttentionOptions& options) const;

  std::string type() const override { return "Attention"; }
  void visit(Visitor& visitor) override;

 private:
  struct Heads {
    Tensor q, k, v;  // [B, H, N, d]
  };
  Tensor fused_projection(const Tensor& x, const Tensor& rotary) const;
  Heads project(const Tensor& x, const Tensor& rotary) const;
  Tensor score_bias(const AttentionOptions& options) const;
  AttentionOutput attend_heads(const Tensor& x, const AttentionOptions& options) const;  // without the projection
  Tensor ablated(const Tensor& merged, const AttentionOptions& options) const;

  AttentionConfig config_;
  int64_t head_dim_;
  double scale_;
  std::optional<Linear> qkv_, query_, key_, value_;
  Tensor q_bias_, v_bias_;
  std::optional<LayerNorm> q_norm_, k_norm_, norm_;
  std::optional<RelativePositionBias> rel_pos_bias_;
  Dropout attn_drop_;
  Linear proj_;
  Dropout proj_drop_;
};

// softmax(scale · q kᵀ + bias) v with heads merged, for every attention layer.  Uses the fused operation, or separate
// operations if `layer` is traced or drops weights.  The returned weights are those before dropout.
AttentionOutput attend(const Module& layer, const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                       const Tensor& bias, const Dropout* drop, bool need_weights);

// [B, N, H·d] → [B, H, N, d], as a view.
Tensor split_heads(const Tensor& x, int64_t num_heads);

}  // namespace vitrail::nn
