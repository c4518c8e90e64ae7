// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/block.h"

#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {
namespace {

Tensor gamma_of(const std::optional<LayerScale>& scale) { return scale ? scale->gamma() : Tensor(); }

}  // namespace

Block::Block(const BlockConfig& config, const ParamSource& params)
    : Module(params.path()),
      norm_first_(config.norm_first),
      res_post_norm_(config.res_post_norm),
      norm1_(config.attention.dim, config.norm_eps, params.child("norm1"), config.attention.norm_layer),
      attn_(config.attention, params.child("attn")),
      drop_path1_(config.drop_path, params.child("drop_path1").path()),
      norm2_(config.attention.dim, config.norm_eps, params.child("norm2"), config.attention.norm_layer),
      drop_path2_(config.drop_path, params.child("drop_path2").path()) {
  const int64_t dim = config.attention.dim, hidden = config.mlp_hidden > 0 ? config.mlp_hidden : 4 * dim;
  const auto hidden_norm_eps = config.scale_mlp ? std::optional(config.norm_eps) : std::nullopt;
  if (config.swiglu) {
    swiglu_.emplace(SwiGluConfig{.in_features = dim,
                                 .hidden_features = hidden,
                                 .bias = config.attention.proj_bias,
                                 .norm_eps = hidden_norm_eps,
                                 .init = config.attention.init},
                    params.child("mlp"));
  } else {
    mlp_.emplace(MlpConfig{.in_features = dim,
                           .hidden_features = hidden,
                           .activation = config.activation,
                           .dropout = config.mlp_drop,
                           .bias = config.attention.proj_bias,
                           .hidden_norm_eps = hidden_norm_eps,
                           .init = config.attention.init},
                 params.child("mlp"));
  }
  if (config.init_values) {
    ls1_.emplace(dim, *config.init_values, params.child("ls1"));
    ls2_.emplace(dim, *config.init_values, params.child("ls2"));
  }
}

// x + dp(ls(branch)): one fused operation, or three that a trace sees.
Tensor Block::add(const Tensor& x, const Tensor& branch, const Residual& names) const {
  const auto& [scale, drop_path, scale_name, drop_path_name, sum_name] = names;
  const Tensor gamma = gamma_of(scale), keep = drop_path.keep(x.size(0));
  if (!tracing()) return ops::residual_add(x, branch, gamma, keep);
  const Tensor scaled = gamma.defined() ? ops::mul(branch, gamma) : branch;
  trace(*this, scale_name, scaled);
  const Tensor kept =
      keep.defined() ? ops::residual_add(Tensor::zeros(x.shape(), x.dtype()), scaled, {}, keep) : scaled;
  trace(*this, drop_path_name, kept);
  const Tensor sum = ops::residual_add(x, kept);
  trace(*this, sum_name, sum);
  return sum;
}

Tensor Block::attend(const Tensor& x, const AttentionOptions& options, AttentionOutput* output) const {
  auto attention = [&](const Tensor& input) {
    AttentionOutput result = attn_.forward(input, options);
    if (output) *output = result;
    return result.out;
  };
  const Tensor skip = options.num_queries > 0 ? ops::contiguous(x.narrow(1, 0, options.num_queries)) : x;
  const Residual residual{ls1_, drop_path1_, "ls1", "drop_path1", "residual1"};
  if (res_post_norm_) return add(skip, norm1_.forward(attention(x)), residual);
  if (norm_first_) return add(skip, attention(norm1_.forward(x)), residual);
  return norm1_.forward(add(skip, attention(x), residual));
}

Tensor Block::mlp(const Tensor& x) const { return mlp_ ? mlp_->forward(x) : swiglu_->forward(x); }

Tensor Block::feed_forward(const Tensor& y) const {
  const Residual residual{ls2_, drop_path2_, "ls2", "drop_path2", "residual2"};
  if (res_post_norm_) return traced(*this, add(y, norm2_.forward(mlp(y)), residual));
  if (norm_first_) return traced(*this, add(y, mlp(norm2_.forward(y)), residual));
  return traced(*this, norm2_.forward(add(y, mlp(y), residual)));
}

void Block::visit(Visitor& visitor) {
  visitor.child("norm1", static_cast<Module&>(norm1_));
  visitor.child("attn", static_cast<Module&>(attn_));
  visitor.child("ls1", ls1_);
  visitor.child("drop_path1", static_cast<Module&>(drop_path1_));
  visitor.child("norm2", static_cast<Module&>(norm2_));
  mlp_ ? visitor.child("mlp", mlp_) : visitor.child("mlp", swiglu_);
  visitor.child("ls2", ls2_);
  visitor.child("drop_path2", static_cast<Module&>(drop_path2_));
}

}  // namespace vitrail::nn
