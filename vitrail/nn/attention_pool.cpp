// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/attention_pool.h"

#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {
namespace {

const AttentionPoolConfig& checked(const AttentionPoolConfig& config, const std::string& where) {
  if (config.num_heads < 1 || config.dim % config.num_heads != 0) {
    throw Error(where, "a width that num_heads divides",
                str("width ", config.dim, " and ", config.num_heads, " heads"));
  }
  return config;
}

}  // namespace

AttentionPoolLatent::AttentionPoolLatent(const AttentionPoolConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(checked(config, params.path().empty() ? "attention pool" : params.path())),
      latent_(params.get("latent", {1, 1, config.dim},
                         init::truncated_normal(1.0 / std::sqrt(static_cast<double>(config.dim))))),
      kv_(config.dim, 2 * config.dim, config.qkv_bias, params.child("kv"),
          init::linear(config.init, init::Role::attn_proj, config.dim, 2 * config.dim)),
      proj_(config.dim, config.dim, true, params.child("proj"),
            init::linear(config.init, init::Role::attn_proj, config.dim, config.dim)),
      proj_drop_(config.proj_drop, params.child("proj_drop").path()) {
  if (config.q_proj) {
    q_.emplace(config.dim, config.dim, config.qkv_bias, params.child("q"),
               init::linear(config.init, init::Role::attn_proj, config.dim, config.dim));
  }
  if (config.mlp_hidden == 0) return;
  norm_.emplace(config.dim, config.norm_eps, params.child("norm"), config.norm_layer);
  mlp_.emplace(MlpConfig{.in_features = config.dim,
                         .hidden_features = config.mlp_hidden,
                         .activation = config.activation,
                         .init = config.init},
               params.child("mlp"));
}

// The query depends only on parameters, so a compiled program has it as a constant.
Tensor AttentionPoolLatent::forward(const Tensor& x) const {
  if (x.rank() != 3 || x.size(2) != config_.dim) {
    throw Error(path().empty() ? "attention pool" : path(), str("x [B, N, ", config_.dim, "]"), x.shape().to_string());
  }
  const int64_t batch = x.size(0), heads = config_.num_heads, head_dim = config_.dim / heads;
  const Tensor query = q_ ? q_->forward(latent_) : latent_;
  const Tensor q = split_heads(query, heads).expand({batch, heads, 1, head_dim});
  const Tensor kv = kv_.forward(x).view({batch, x.size(1), 2, heads, head_dim}).permute({2, 0, 3, 1, 4});
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  const Tensor attended = attend(*this, q, kv.select(0, 0), kv.select(0, 1), scale, {}, nullptr, false).out;
  const Tensor o = proj_drop_.forward(proj_.forward(attended));
  const Tensor sum = mlp_ ? ops::residual_add(o, mlp_->forward(norm_->forward(o))) : o;  // [B, 1, C]
  trace(*this, "residual", sum);
  return traced(*this, sum.select(1, 0));
}

void AttentionPoolLatent::visit(Visitor& visitor) {
  visitor.parameter("latent", latent_);
  if (q_) visitor.child("q", q_);
  visitor.child("kv", static_cast<Module&>(kv_));
  visitor.child("proj", static_cast<Module&>(proj_));
  visitor.child("proj_drop", static_cast<Module&>(proj_drop_));
  if (norm_) visitor.child("norm", norm_);
  if (mlp_) visitor.child("mlp", mlp_);
}

}  // namespace vitrail::nn
