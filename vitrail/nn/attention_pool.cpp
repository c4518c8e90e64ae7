// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/attention_pool.h"

#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {
namespace {

AttentionPoolConfig checked(AttentionPoolConfig config, const std::string& where) {
  if (config.out_dim == 0) config.out_dim = config.dim;
  if (config.num_heads < 1 || config.out_dim % config.num_heads != 0) {
    throw Error(where, "a width that num_heads divides",
                str("width ", config.out_dim, " and ", config.num_heads, " heads"));
  }
  return config;
}

}  // namespace

AttentionPoolLatent::AttentionPoolLatent(const AttentionPoolConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(checked(config, params.path().empty() ? "attention pool" : params.path())),
      latent_(params.get("latent", {1, 1, config_.out_dim},
                         init::truncated_normal(1.0 / std::sqrt(static_cast<double>(config_.out_dim))))),
      kv_(config.dim, 2 * config_.out_dim, config.qkv_bias, params.child("kv"),
          init::linear(config.init, init::Role::attn_proj, config.dim, 2 * config_.out_dim)),
      proj_(config_.out_dim, config_.out_dim, true, params.child("proj"),
            init::linear(config.init, init::Role::attn_proj, config_.out_dim, config_.out_dim)),
      proj_drop_(config.proj_drop, params.child("proj_drop").path()) {
  const int64_t width = config_.out_dim;
  if (config.input_norms) {
    q_norm_.emplace(width, config.norm_eps, params.child("q_norm"), config.norm_layer);
    kv_norm_.emplace(config.dim, config.norm_eps, params.child("kv_norm"), config.norm_layer);
  }
  if (config.q_proj) {
    q_.emplace(width, width, config.qkv_bias, params.child("q"),
               init::linear(config.init, init::Role::attn_proj, width, width));
  }
  if (config.mlp_hidden == 0) return;
  norm_.emplace(width, config.norm_eps, params.child("norm"), config.norm_layer);
  mlp_.emplace(MlpConfig{.in_features = width,
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
  const int64_t batch = x.size(0), heads = config_.num_heads, head_dim = config_.out_dim / heads;
  // A trace has the query of each image, as a hook of timm gets it.
  const Tensor input = tracing() ? ops::contiguous(latent_.expand({batch, 1, config_.out_dim})) : latent_;
  const Tensor latent = q_norm_ ? q_norm_->forward(input) : input;
  const Tensor query = q_ ? q_->forward(latent) : latent;
  const Tensor q = split_heads(query, heads).expand({batch, heads, 1, head_dim});
  const Tensor kv = kv_.forward(kv_norm_ ? kv_norm_->forward(x) : x)
                        .view({batch, x.size(1), 2, heads, head_dim})
                        .permute({2, 0, 3, 1, 4});
  if (!q_norm_) trace(*this, "q_norm", q);
  const Tensor k = kv.select(0, 0), v = kv.select(0, 1);
  trace(*this, "k_norm", k);
  trace(*this, "v", v);
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  const Tensor attended = attend(*this, q, k, v, scale, {}, nullptr, false).out;
  const Tensor o = proj_drop_.forward(proj_.forward(attended));
  const Tensor sum = mlp_ ? ops::residual_add(o, mlp_->forward(norm_->forward(o))) : o;  // [B, 1, D]
  trace(*this, "residual", sum);
  return traced(*this, sum.select(1, 0));
}

void AttentionPoolLatent::visit(Visitor& visitor) {
  visitor.parameter("latent", latent_);
  if (q_norm_) visitor.child("q_norm", q_norm_);
  if (kv_norm_) visitor.child("kv_norm", kv_norm_);
  if (q_) visitor.child("q", q_);
  visitor.child("kv", static_cast<Module&>(kv_));
  visitor.child("proj", static_cast<Module&>(proj_));
  visitor.child("proj_drop", static_cast<Module&>(proj_drop_));
  if (norm_) visitor.child("norm", norm_);
  if (mlp_) visitor.child("mlp", mlp_);
}

}  // namespace vitrail::nn
