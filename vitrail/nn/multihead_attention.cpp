// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/multihead_attention.h"

#include <cmath>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {
namespace {

// An additive bias: −∞ where the mask equals `ignored`, else 0.
Tensor bias_from_mask(const Tensor& mask, bool ignored, const char* name) {
  if (is_floating(mask.dtype())) {
    throw Error("MultiheadAttention", str("an integer or boolean ", name, " (a floating one is attn_bias)"),
                name_of(mask.dtype()));
  }
  const Tensor flags = mask.to(DType::i64).contiguous();
  Tensor bias = Tensor::zeros(mask.shape());
  for (int64_t i = 0; i < flags.numel(); ++i) {
    if ((flags.data<int64_t>()[i] != 0) == ignored) bias.data<float>()[i] = -std::numeric_limits<float>::infinity();
  }
  return bias;
}

void check_mask(const Tensor& mask, const Shape& scores, const char* name) {
  const bool rank_2 = mask.shape() == Shape{scores[2], scores[3]};
  const bool rank_4 = mask.rank() == 4 && mask.size(0) == scores[0] &&
                      (mask.size(1) == 1 || mask.size(1) == scores[1]) && mask.size(2) == scores[2] &&
                      mask.size(3) == scores[3];
  if (!rank_2 && !rank_4) {
    throw Error("MultiheadAttention", str(name, " [T, S], [B, 1, T, S] or [B, H, T, S] for scores ", scores),
                mask.shape().to_string());
  }
}

// All masks as one additive bias that broadcasts to [B, H, T, S]; undefined if there are none.
Tensor combined_bias(const AttentionMasks& masks, const Shape& scores) {
  if (masks.attn_bias.defined()) {
    check_mask(masks.attn_bias, scores, "attn_bias");
    if (!is_floating(masks.attn_bias.dtype())) {
      throw Error("MultiheadAttention", "a floating attn_bias (an integer or boolean mask is attn_mask)",
                  name_of(masks.attn_bias.dtype()));
    }
  }
  Tensor bias = masks.attn_bias;  // the first operand, because the sum has its dtype
  auto include = [&bias](const Tensor& part) { bias = bias.defined() ? ops::add(bias, part) : part; };
  if (masks.key_padding_mask.defined()) {
    if (!(masks.key_padding_mask.shape() == Shape{scores[0], scores[3]})) {
      throw Error("MultiheadAttention", str("key_padding_mask [", scores[0], ", ", scores[3], "]"),
                  masks.key_padding_mask.shape().to_string());
    }
    include(bias_from_mask(masks.key_padding_mask, true, "key_padding_mask").view({scores[0], 1, 1, scores[3]}));
  }
  if (masks.attn_mask.defined()) {
    check_mask(masks.attn_mask, scores, "attn_mask");
    include(bias_from_mask(masks.attn_mask, false, "attn_mask"));
  }
  return bias;
}

}  // namespace

MultiheadAttention::MultiheadAttention(const MultiheadAttentionConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      q_proj_(config.embed_dim, config.embed_dim, config.bias, params.child("q_proj")),
      k_proj_(config.embed_dim, config.embed_dim, config.bias, params.child("k_proj")),
      v_proj_(config.embed_dim, config.embed_dim, config.bias, params.child("v_proj")),
      out_proj_(config.embed_dim, config.embed_dim, config.bias, params.child("out_proj")),
      dropout_(config.dropout, params.child("dropout").path()) {
  if (config.num_heads < 1 || config.embed_dim % config.num_heads != 0) {
    throw Error("MultiheadAttention", "an embed_dim that num_heads divides",
                str("embed_dim ", config.embed_dim, " and ", config.num_heads, " heads"));
  }
}

MultiheadAttentionOutput MultiheadAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                     const AttentionMasks& masks, bool need_weights,
                                                     bool average_weights) const {
  const bool fits = query.rank() == 3 && key.rank() == 3 && key.shape() == value.shape() &&
                    query.size(0) == key.size(0) && query.size(2) == config_.embed_dim &&
                    key.size(2) == config_.embed_dim;
  if (!fits) {
    throw Error("MultiheadAttention",
                str("query [B, T, ", config_.embed_dim, "], key and value [B, S, ", config_.embed_dim, "]"),
                str(query.shape(), ", ", key.shape(), ", ", value.shape()));
  }
  const int64_t heads = config_.num_heads;
  const double scale = 1.0 / std::sqrt(static_cast<double>(config_.embed_dim / heads));
  const Tensor bias = combined_bias(masks, {query.size(0), heads, query.size(1), key.size(1)});
  const Tensor q = split_heads(q_proj_.forward(query), heads), k = split_heads(k_proj_.forward(key), heads);
  const Tensor v = split_heads(v_proj_.forward(value), heads);
  trace(*this, "q", q);
  trace(*this, "k", k);
  trace(*this, "v", v);
  const AttentionOutput attended = attend(*this, q, k, v, scale, bias, &dropout_, need_weights);
  MultiheadAttentionOutput result{traced(*this, out_proj_.forward(attended.out)), attended.weights};
  if (need_weights && average_weights) result.weights = ops::mean(attended.weights, 1);
  return result;
}

void MultiheadAttention::visit(Visitor& visitor) {
  visitor.child("q_proj", static_cast<Module&>(q_proj_));
  visitor.child("k_proj", static_cast<Module&>(k_proj_));
  visitor.child("v_proj", static_cast<Module&>(v_proj_));
  visitor.child("out_proj", static_cast<Module&>(out_proj_));
  visitor.child("dropout", static_cast<Module&>(dropout_));
}

}  // namespace vitrail::nn
