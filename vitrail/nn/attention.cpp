// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/attention.h"

#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/softmax.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {
namespace {

int64_t head_dim_of(const AttentionConfig& config, const std::string& where) {
  if (config.num_heads < 1) throw Error(where, "at least one head", str(config.num_heads));
  if (config.head_dim && *config.head_dim < 1) throw Error(where, "a head_dim of at least 1", str(*config.head_dim));
  if (config.head_dim) return *config.head_dim;
  if (config.dim % config.num_heads != 0) {
    throw Error(where, "a width that num_heads divides (or a head_dim)",
                str("width ", config.dim, " and ", config.num_heads, " heads"));
  }
  return config.dim / config.num_heads;
}

// The output of a norm that some layers lack.  Without it the trace has its input, as of timm's Identity.
Tensor norm_or_pass(const Module& layer, const std::optional<LayerNorm>& norm, const char* name, const Tensor& x) {
  if (norm) return norm->forward(x);
  trace(layer, name, x);
  return x;
}

}  // namespace

Attention::Attention(const AttentionConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      head_dim_(head_dim_of(config, params.path().empty() ? "attention" : params.path())),
      scale_(config.qk_scale.value_or(1.0 / std::sqrt(static_cast<double>(head_dim_)))),
      attn_drop_(config.attn_drop, params.child("attn_drop").path()),
      proj_(config.num_heads * head_dim_, config.dim, config.proj_bias, params.child(config.split ? "out" : "proj"),
            init::linear(config.init, init::Role::attn_proj, config.num_heads * head_dim_, config.dim)),
      proj_drop_(config.proj_drop, params.child("proj_drop").path()) {
  const int64_t inner = config.num_heads * head_dim_;
  if (config.split) {
    const auto part_init = init::linear(config.init, init::Role::attn_proj, config.dim, inner);
    query_.emplace(config.dim, inner, config.qkv_bias, params.child("query"), part_init);
    key_.emplace(config.dim, inner, config.qkv_bias, params.child("key"), part_init);
    value_.emplace(config.dim, inner, config.qkv_bias, params.child("value"), part_init);
  } else {
    qkv_.emplace(config.dim, 3 * inner, config.qkv_bias && config.k_bias, params.child("qkv"),
                 init::linear(config.init, init::Role::qkv, config.dim, 3 * inner));
    if (config.qkv_bias && !config.k_bias) {
      q_bias_ = params.get("q_bias", {inner}, init::zeros());
      v_bias_ = params.get("v_bias", {inner}, init::zeros());
    }
  }
  if (config.qk_norm) {
    q_norm_.emplace(head_dim_, config.norm_eps, params.child("q_norm"), config.norm_layer);
    k_norm_.emplace(head_dim_, config.norm_eps, params.child("k_norm"), config.norm_layer);
  }
  if (config.scale_norm) norm_.emplace(inner, config.norm_eps, params.child("norm"));
  if (config.rel_pos_grid) {
    rel_pos_bias_.emplace(RelativePositionBiasConfig{*config.rel_pos_grid, config.num_heads, config.rel_pos_resampling},
                          params);
  }
}

// The sum of the given bias and that of the relative positions; undefined if there is none.
Tensor Attention::score_bias(const AttentionOptions& options) const {
  Tensor bias = options.bias;
  if (rel_pos_bias_) {
    const Tensor own = rel_pos_bias_->forward(options.grid);
    bias = bias.defined() ? ops::add(own, bias) : own;
  }
  const bool narrowed = bias.defined() && options.num_queries > 0 && bias.size(2) > 1;
  return narrowed ? ops::contiguous(bias.narrow(2, 0, options.num_queries)) : bias;
}

// x [B, N, C] → q, k and v [B, N, 3·H·d], rotated.
Tensor Attention::fused_projection(const Tensor& x, const Tensor& rotary) const {
  Tensor bias;
  if (q_bias_.defined()) bias = ops::cat({q_bias_, Tensor::zeros(q_bias_.shape(), q_bias_.dtype()), v_bias_}, 0);
  const Tensor qkv = qkv_->forward_with_bias(x, bias);
  return rotary.defined() ? ops::rotary(qkv, rotary, config_.num_heads, config_.rotary_pairs) : qkv;
}

Attention::Heads Attention::project(const Tensor& x, const Tensor& rotary) const {
  const int64_t heads = config_.num_heads;
  if (rotary.defined() && (config_.split || q_norm_)) {
    throw Error(path(), "rotary positions with a fused qkv, without qk_norm", config_.split ? "split" : "qk_norm");
  }
  const auto reshape = [&](const Tensor& qkv) { return qkv.view({x.size(0), x.size(1), 3, heads, head_dim_}); };
  const auto permute = [](const Tensor& reshaped) { return reshaped.permute({2, 0, 3, 1, 4}); };
  const auto unbind = [](const Tensor& qkv) { return Heads{qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2)}; };
  Heads result;
  Tensor qkv;  // [B, N, 3·H·d]
  if (config_.split) {
    result = {split_heads(query_->forward(x), heads), split_heads(key_->forward(x), heads),
              split_heads(value_->forward(x), heads)};
  } else {
    qkv = fused_projection(x, {});  // without rotation, which follows q_norm and k_norm
    const Tensor reshaped = reshape(qkv);
    trace(*this, "qkv_reshaped", reshaped);
    const Tensor permuted = permute(reshaped);  // → 3 × [B, H, N, d]
    trace(*this, "qkv_permuted", permuted);
    result = unbind(permuted);
  }
  result.q = norm_or_pass(*this, q_norm_, "q_norm", result.q);
  result.k = norm_or_pass(*this, k_norm_, "k_norm", result.k);
  if (!rotary.defined()) return result;
  if (tracing()) {  // what was reported, so that it has gradients
    const Tensor joined = ops::cat({result.q.unsqueeze(0), result.k.unsqueeze(0), result.v.unsqueeze(0)}, 0);
    qkv = ops::contiguous(joined.permute({1, 3, 0, 2, 4})).view(qkv.shape());
  }
  return unbind(permute(reshape(ops::rotary(qkv, rotary, heads, config_.rotary_pairs))));
}

AttentionOutput Attention::attend_heads(const Tensor& x, const AttentionOptions& options) const {
  const bool fused = qkv_ && !q_norm_ && !tracing() && !attn_drop_.active() && !options.need_weights &&
                     !options.need_keys && !options.bias.defined() && !rel_pos_bias_;
  if (fused) {
    const Tensor qkv = fused_projection(x, options.rotary);
    return {ops::self_attention(qkv, config_.num_heads, scale_, options.num_queries), {}, {}};
  }
  const Heads heads = project(x, options.rotary);
  const Tensor q = options.num_queries > 0 ? heads.q.narrow(2, 0, options.num_queries) : heads.q;
  trace(*this, "q", q);
  trace(*this, "k", heads.k);
  trace(*this, "v", heads.v);
  AttentionOutput result =
      attend(*this, q, heads.k, heads.v, scale_, score_bias(options), &attn_drop_, options.need_weights);
  if (options.need_keys) result.keys = heads.k;
  return result;
}

// merged [B, N, H·d] with the mean over tokens instead of each token's values of the ablated head.
Tensor Attention::ablated(const Tensor& merged, const AttentionOptions& options) const {
  const int64_t head = *options.ablated_head, heads = config_.num_heads;
  if (head < 0 || head >= heads) throw Error("ablated_head", str("a head from 0 to ", heads - 1), str(head));
  if (options.num_queries > 0)
    throw Error("ablated_head", "all queries, whose mean it takes", str("num_queries ", options.num_queries));
  const int64_t begin = head * head_dim_, end = begin + head_dim_, width = heads * head_dim_;
  const Tensor mean = ops::mean(merged.narrow(2, begin, head_dim_), 1).view({merged.size(0), 1, head_dim_});
  std::vector<Tensor> parts{mean.expand({merged.size(0), merged.size(1), head_dim_})};
  if (begin > 0) parts.insert(parts.begin(), merged.narrow(2, 0, begin));
  if (end < width) parts.push_back(merged.narrow(2, end, width - end));
  return ops::cat(parts, 2);
}

AttentionOutput Attention::forward(const Tensor& x, const AttentionOptions& options) const {
  if (x.rank() != 3 || x.size(2) != config_.dim) {
    throw Error(path().empty() ? "attention" : path(), str("x [B, N, ", config_.dim, "]"), x.shape().to_string());
  }
  AttentionOutput result = attend_heads(x, options);
  if (options.ablated_head) result.out = ablated(result.out, options);
  result.out = norm_or_pass(*this, norm_, "norm", result.out);
  result.out = traced(*this, proj_drop_.forward(proj_.forward(result.out)));
  return result;
}

void Attention::visit(Visitor& visitor) {
  if (config_.split) {
    visitor.child("query", query_);
    visitor.child("key", key_);
    visitor.child("value", value_);
    visitor.child("out", static_cast<Module&>(proj_));
  } else {
    visitor.parameter("q_bias", q_bias_);
    visitor.parameter("v_bias", v_bias_);
    visitor.child("qkv", qkv_);
  }
  if (rel_pos_bias_) rel_pos_bias_->visit(visitor);
  visitor.child("q_norm", q_norm_);
  visitor.child("k_norm", k_norm_);
  visitor.child("attn_drop", static_cast<Module&>(attn_drop_));
  if (norm_) visitor.child("norm", norm_);
  if (!config_.split) visitor.child("proj", static_cast<Module&>(proj_));
  visitor.child("proj_drop", static_cast<Module&>(proj_drop_));
}

AttentionOutput attend(const Module& layer, const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                       const Tensor& bias, const Dropout* drop, bool need_weights) {
  if (!tracing() && !(drop && drop->active())) {
    const ops::AttentionResult fused = ops::attention(q, k, v, scale, bias, need_weights);
    return {fused.out, fused.weights, {}};
  }
  const Tensor k_transposed = k.transpose(2, 3);  // [B, H, S, d] → [B, H, d, S]
  trace(layer, "k_transposed", k_transposed);
  Tensor scores = ops::mul(ops::matmul(q, k_transposed), Tensor::full({1}, scale, q.dtype()));
  if (bias.defined()) scores = ops::add(scores, bias.to(q.dtype()));
  trace(layer, "scores", scores);
  const Tensor weights = ops::softmax(scores);
  trace(layer, "weights", weights);
  const Tensor context = ops::matmul(drop ? drop->forward(weights) : weights, v);
  trace(layer, "context", context);
  const Tensor merged = ops::merge_heads(context);
  trace(layer, "merged", merged);
  return {merged, need_weights ? weights : Tensor(), {}};
}

Tensor split_heads(const Tensor& x, int64_t num_heads) {
  return x.view({x.size(0), x.size(1), num_heads, x.size(2) / num_heads}).permute({0, 2, 1, 3});
}

}  // namespace vitrail::nn
