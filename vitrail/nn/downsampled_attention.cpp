// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/downsampled_attention.h"

#include <algorithm>
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

// [B or 1, n, H·d] → [batch, H, n, d]
Tensor DownsampledAttention::heads_for(const Tensor& projected, int64_t batch) const {
  const Tensor heads = split_heads(projected, num_heads_);
  return heads.size(0) == 1 ? heads.expand({batch, heads.size(1), heads.size(2), heads.size(3)}) : heads;
}

Tensor DownsampledAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value) const {
  const double scale = 1.0 / std::sqrt(static_cast<double>(internal_dim_ / num_heads_));
  const int64_t batch = std::max(query.size(0), key.size(0));
  const Tensor q = heads_for(q_proj_.forward(query), batch), k = heads_for(k_proj_.forward(key), batch);
  const Tensor v = heads_for(v_proj_.forward(value), batch);
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
