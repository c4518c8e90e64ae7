// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/downsampled_attention.h"

#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"

namespace vitrail::nn {
namespace {

int64_t internal_dim_of(const DownsampledAttentionConfig& config) {
  const bool fits = config.downsample_rate > 0 && config.num_heads > 0 &&
                    config.embedding_dim % config.downsample_rate == 0 &&
                    config.embedding_dim / config.downsample_rate % config.num_heads == 0;
  if (!fits) {
    throw Error("DownsampledAttention", "an internal width (embedding_dim / downsample_rate) that num_heads divides",
                str("embedding_dim ", config.embedding_dim, ", downsample_rate ", config.downsample_rate, ", ",
                    config.num_heads, " heads"));
  }
  return config.embedding_dim / config.downsample_rate;
}

}  // namespace

DownsampledAttention::DownsampledAttention(const DownsampledAttentionConfig& config, const ParamSource& params)
    : Module(params.path()),
      num_heads_(config.num_heads),
      internal_dim_(internal_dim_of(config)),
      q_proj_(config.embedding_dim, internal_dim_, true, params.child("q_proj")),
      k_proj_(config.embedding_dim, internal_dim_, true, params.child("k_proj")),
      v_proj_(config.embedding_dim, internal_dim_, true, params.child("v_proj")),
      out_proj_(internal_dim_, config.embedding_dim, true, params.child("out_proj")) {}

Tensor DownsampledAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value) const {
  const double scale = 1.0 / std::sqrt(static_cast<double>(internal_dim_ / num_heads_));
  const Tensor q = split_heads(q_proj_.forward(query), num_heads_), k = split_heads(k_proj_.forward(key), num_heads_);
  const Tensor v = split_heads(v_proj_.forward(value), num_heads_);
  const AttentionOutput attended = attend(*this, q, k, v, scale, {}, nullptr, false);
  return traced(*this, out_proj_.forward(attended.out));
}

void DownsampledAttention::visit(Visitor& visitor) {
  visitor.child("q_proj", static_cast<Module&>(q_proj_));
  visitor.child("k_proj", static_cast<Module&>(k_proj_));
  visitor.child("v_proj", static_cast<Module&>(v_proj_));
  visitor.child("out_proj", static_cast<Module&>(out_proj_));
}

}  // namespace vitrail::nn
