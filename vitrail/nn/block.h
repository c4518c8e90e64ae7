// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/attention.h"
#include "vitrail/nn/layer_scale.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/swiglu.h"

namespace vitrail::nn {

struct BlockConfig {
  AttentionConfig attention{};  // its dim, norm_layer and proj_bias are those of the block and of the MLP too
  int64_t mlp_hidden = 0;       // 0: 4 × dim
  kernels::Activation activation = kernels::Activation::gelu;
  bool swiglu = false;     // SwiGLU of mlp_hidden features instead of the MLP
  bool scale_mlp = false;  // LayerNorm on the hidden features of the MLP
  double norm_eps = 1e-6;
  bool norm_first = true;
  bool res_post_norm = false;              // normalises the branches, not their inputs or sums; overrides norm_first
  std::optional<double> init_values = {};  // if set: LayerScale with this initial value
  double mlp_drop = 0, drop_path = 0;
};

// Transformer block (Dosovitskiy et al. 2021, eq. 2–3).  x [B, N, C] → [B, N, C].
//   norm_first:  y = x + dp(ls1(attn(norm1(x)))),  then  y + dp(ls2(mlp(norm2(y))))
//   otherwise:   y = norm1(x + dp(ls1(attn(x)))),  then  norm2(y + dp(ls2(mlp(y)))) (torch.nn.TransformerEncoderLayer)
//   res_post_norm:  y = x + dp(ls1(norm1(attn(x)))),  then  y + dp(ls2(norm2(mlp(y))))  (Liu et al. 2022, Swin V2)
// Source: timm's Block and EvaBlock, EvaBlockPostNorm.  Traced besides the modules: residual1 and residual2, the sums.
class Block : public Module {
 public:
  Block(const BlockConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& x) const { return feed_forward(attend(x)); }

  // Equation 2, attention with its residual: x [B, N, C] → y [B, queries, C].  `output`, if not null, receives the
  // optional outputs.
  Tensor attend(const Tensor& x, const AttentionOptions& options = {}, AttentionOutput* output = nullptr) const;
  // Equation 3, the MLP with its residual: y [B, N, C] → [B, N, C].
  Tensor feed_forward(const Tensor& y) const;

  std::string type() const override { return "Block"; }
  void visit(Visitor& visitor) override;

 private:
  // What is between a branch and its sum, and the names of the steps in a trace.
  struct Residual {
    const std::optional<LayerScale>& scale;
    const DropPath& drop_path;
    const char *scale_name, *drop_path_name, *sum_name;
  };
  Tensor add(const Tensor& x, const Tensor& branch, const Residual& residual) const;
  Tensor mlp(const Tensor& x) const;

  bool norm_first_, res_post_norm_;
  LayerNorm norm1_;
  Attention attn_;
  std::optional<LayerScale> ls1_;
  DropPath drop_path1_;
  LayerNorm norm2_;
  std::optional<Mlp> mlp_;
  std::optional<SwiGlu> swiglu_;
  std::optional<LayerScale> ls2_;
  DropPath drop_path2_;
};

}  // namespace vitrail::nn
