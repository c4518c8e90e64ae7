// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/block.h"

#include "vitrail/base/error.h"
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

AttentionOutput Block::attention_branch(const Tensor& x, const AttentionExtras& extras) const {
  AttentionOutput result = attn_.forward(x, extras);
  trace(*this, "attn", result.out);
  return result;
}

Tensor Block::mlp_branch(const Tensor& x) const {
  const Tensor out = mlp_ ? mlp_->forward(x) : swiglu_->forward(x);
  trace(*this, "mlp", out);
  return out;
}

Tensor Block::forward(const Tensor& x, Tensor* attention_weights, TokenMerging* merging, int64_t read) const {
  if (merging && read > 0) throw Error(path(), "tokens to be merged or few to be read", "both");
  const AttentionExtras extras{.weights = attention_weights != nullptr,
                               .keys = merging != nullptr,
                               .bias = merging ? merging->key_bias() : Tensor(),
                               .read = read};
  const Tensor residual = read > 0 ? ops::contiguous(x.narrow(1, 0, read)) : x;
  const Tensor keep1 = drop_path1_.keep(x.size(0)), keep2 = drop_path2_.keep(x.size(0));
  const Tensor gamma1 = gamma_of(ls1_), gamma2 = gamma_of(ls2_);
  auto merged = [&](const Tensor& y, const AttentionOutput& attention) {
    if (attention_weights) *attention_weights = attention.weights;
    return merging ? merging->merge(y, attention.keys) : y;
  };
  Tensor out;
  if (norm_first_) {
    const Tensor normed1 = norm1_.forward(x);
    trace(*this, "norm1", normed1);
    const AttentionOutput attention = attention_branch(normed1, extras);
    const Tensor y = merged(ops::residual_add(residual, attention.out, gamma1, keep1), attention);
    const Tensor normed2 = norm2_.forward(y);
    trace(*this, "norm2", normed2);
    out = ops::residual_add(y, mlp_branch(normed2), gamma2, keep2);
  } else {
    const AttentionOutput attention = attention_branch(x, extras);
    const Tensor y = merged(norm1_.forward(ops::residual_add(residual, attention.out, gamma1, keep1)), attention);
    trace(*this, "norm1", y);
    out = norm2_.forward(ops::residual_add(y, mlp_branch(y), gamma2, keep2));
    trace(*this, "norm2", out);
  }
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
