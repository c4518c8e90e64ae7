// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/attention.h"
#include "vitrail/nn/mlp.h"

namespace vitrail::nn {

struct AttentionPoolConfig {
  int64_t dim = 0;      // width of the tokens
  int64_t out_dim = 0;  // width D of the latent and of the output, which num_heads divides; 0: dim
  int64_t num_heads = 8;
  std::optional<int64_t> mlp_hidden = {};  // none: 4 × D; 0: neither norm nor MLP
  kernels::Activation activation = kernels::Activation::gelu;
  double norm_eps = 1e-6;
  NormLayer norm_layer = NormLayer::layer_norm;
  bool q_proj = true;  // false: the latent is the query itself
  bool qkv_bias = true;
  bool input_norms = false;  // LayerNorm of the latent and of the tokens (CoCa)
  double proj_drop = 0;
  init::Scheme init = init::Scheme::torch;
};

// Multi-head attention pooling (Lee et al. 2019, "Set Transformer", PMA with one seed; Zhai et al. 2022, "Scaling
// Vision Transformers"): a learned latent is the only query.  x [B, N, C] → [B, D].
//   o = proj(attention(q(latent), kv(x))),  then  o + mlp(norm(o))
// Parameters: latent [1, 1, D], q.* [D, D], kv.* [2·D, C], proj.* [D, D], norm.*, mlp.*, and with input_norms
// q_norm.* [D], kv_norm.* [C].  Sources: timm's AttentionPoolLatent, transformers' SiglipMultiheadAttentionPoolingHead,
// without q and MLP Aimv2AttentionPoolingHead, and with input_norms and no MLP the first query of OpenCLIP's
// AttentionalPooler. Traced besides the modules: those of attend(), and residual, the sum.
class AttentionPoolLatent : public Module {
 public:
  AttentionPoolLatent(const AttentionPoolConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& x) const;

  std::string type() const override { return "AttentionPoolLatent"; }
  void visit(Visitor& visitor) override;

 private:
  AttentionPoolConfig config_;
  Tensor latent_;
  std::optional<LayerNorm> q_norm_, kv_norm_;
  std::optional<Linear> q_;
  Linear kv_, proj_;
  Dropout proj_drop_;
  std::optional<LayerNorm> norm_;
  std::optional<Mlp> mlp_;
};

}  // namespace vitrail::nn
