// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/attention.h"
#include "vitrail/nn/layer_scale.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/swiglu.h"
#include "vitrail/nn/token_merging.h"

namespace vitrail::nn {

struct BlockConfig {
  AttentionConfig attention;  // its dim is the block's
  int64_t mlp_hidden = 0;     // 0: 4 × dim
  kernels::Activation activation = kernels::Activation::gelu;
  bool swiglu = false;  // SwiGlu(mlp_hidden) in place of the MLP
  double norm_eps = 1e-6;
  bool norm_first = true;
  std::optional<double> init_values;  // LayerScale with this initial value
  double mlp_drop = 0, drop_path = 0;
};

// Transformer block (Dosovitskiy et al. 2021, eq. 2–3).  x [B, N, C] → [B, N, C].
//   norm_first:  x + dp(ls1(attn(norm1(x)))),  then  x + dp(ls2(mlp(norm2(x))))
//   otherwise:   norm1(x + dp(ls1(attn(x)))),  then  norm2(x + dp(ls2(mlp(x))))     (torch.nn.TransformerEncoderLayer)
// Source: timm's Block; document 004 names it TransformerEncoderBlock.  Traced points: norm1, attn, norm2, mlp, out.
class Block : public Module {
 public:
  Block(const BlockConfig& config, const ParamSource& params);
  // Where not null, attention_weights receives [B, H, N, N], and merging makes fewer tokens of x before the MLP.
  // With `read` above 0 only the first tokens' results are computed, [B, read, C]; not together with merging.
  Tensor forward(const Tensor& x, Tensor* attention_weights = nullptr, TokenMerging* merging = nullptr,
                 int64_t read = 0) const;

  std::string type() const override { return "Block"; }
  void visit(Visitor& visitor) override;

 private:
  AttentionOutput attention_branch(const Tensor& x, const AttentionExtras& extras) const;
  Tensor mlp_branch(const Tensor& x) const;

  bool norm_first_;
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
