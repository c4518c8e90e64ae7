// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/block.h"

#include "vitrail/nn/trace.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {
namespace {

Tensor gamma_of(const std::optional<LayerScale>& scale) { return scale ? scale->gamma() : Tensor(); }

}  // namespace

Block::Block(const BlockConfig& config, const ParamSource& params)
    : Module(params.path()),
      norm_first_(config.norm_first),
      norm1_(config.attention.dim, config.norm_eps, params.child("norm1")),
      attn_(config.attention, params.child("attn")),
      drop_path1_(config.drop_path, params.child("drop_path1").path()),
      norm2_(config.attention.dim, config.norm_eps, params.child("norm2")),
      drop_path2_(config.drop_path, params.child("drop_path2").path()) {
  const int64_t dim = config.attention.dim, hidden = config.mlp_hidden > 0 ? config.mlp_hidden : 4 * dim;
  if (config.swiglu) {
    swiglu_.emplace(SwiGluConfig{.in_features = dim, .hidden_features = hidden, .init = config.attention.init},
                    params.child("mlp"));
  } else {
    mlp_.emplace(MlpConfig{.in_features = dim,
                           .hidden_features = hidden,
                           .activation = config.activation,
                           .dropout = config.mlp_drop,
                           .init = config.attention.init},
                 params.child("mlp"));
  }
  if (config.init_values) {
    ls1_.emplace(dim, *config.init_values, params.child("ls1"));
    ls2_.emplace(dim, *config.init_values, params.child("ls2"));
  }
}

Tensor Block::norm1(const Tensor& x) const {
  const Tensor out = norm1_.forward(x);
  trace(*this, "norm1", out);
  return out;
}

Tensor Block::norm2(const Tensor& x) const {
  const Tensor out = norm2_.forward(x);
  trace(*this, "norm2", out);
  return out;
}

Tensor Block::mlp(const Tensor& x) const {
  const Tensor out = mlp_ ? mlp_->forward(x) : swiglu_->forward(x);
  trace(*this, "mlp", out);
  return out;
}

Tensor Block::attend(const Tensor& x, const AttentionOptions& options, AttentionOutput* output) const {
  auto attention = [&](const Tensor& input) {
    AttentionOutput result = attn_.forward(input, options);
    trace(*this, "attn", result.out);
    if (output) *output = result;
    return result.out;
  };
  const Tensor skip = options.num_queries > 0 ? ops::contiguous(x.narrow(1, 0, options.num_queries)) : x;
  const Tensor gamma = gamma_of(ls1_), keep = drop_path1_.keep(x.size(0));
  if (norm_first_) return ops::residual_add(skip, attention(norm1(x)), gamma, keep);
  return norm1(ops::residual_add(skip, attention(x), gamma, keep));
}

Tensor Block::feed_forward(const Tensor& y) const {
  const Tensor gamma = gamma_of(ls2_), keep = drop_path2_.keep(y.size(0));
  const Tensor out =
      norm_first_ ? ops::residual_add(y, mlp(norm2(y)), gamma, keep) : norm2(ops::residual_add(y, mlp(y), gamma, keep));
  trace(*this, "out", out);
  return out;
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
