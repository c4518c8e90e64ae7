// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/text_transformer.h"

#include <algorithm>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

nn::BlockConfig block_config(const TextTransformerConfig& config) {
  nn::BlockConfig block;
  block.attention = {
      .dim = config.embed_dim, .num_heads = config.num_heads, .qkv_bias = true, .norm_eps = config.norm_eps};
  block.mlp_hidden = config.mlp_hidden;
  block.activation = config.act_layer;
  block.norm_eps = config.norm_eps;
  block.init_values = config.init_values;
  return block;
}

void check_range(const char* field, int64_t value, int64_t max) {
  if (value < 1 || value > max) throw Error(str("text tower: ", field), str("a value from 1 to ", max), str(value));
}

// Above any published model; products of two limits do not overflow.
TextTransformerConfig checked(TextTransformerConfig config) {
  constexpr int64_t kMaxWidth = 1 << 20;
  check_range("vocab_size", config.vocab_size, int64_t{1} << 24);
  check_range("context_length", config.context_length, 1 << 16);
  check_range("embed_dim", config.embed_dim, kMaxWidth);
  check_range("depth", config.depth, 4096);
  check_range("num_heads", config.num_heads, kMaxWidth);
  check_range("mlp_hidden", config.mlp_hidden, kMaxWidth * 16);
  if (config.output_dim == 0) config.output_dim = config.embed_dim;
  check_range("output_dim", config.output_dim, kMaxWidth);
  if (!(config.norm_eps >= 0 && config.norm_eps < 1)) {
    throw Error("text tower: norm_eps", "a value in [0, 1)", str(config.norm_eps));
  }
  return config;
}

// An initialiser of a weight [C, C].
void identity(Tensor& weight, uint64_t) {
  float* const values = weight.data<float>();
  std::fill(values, values + weight.numel(), 0.F);
  for (int64_t i = 0; i < weight.size(0); ++i) values[i * weight.size(1) + i] = 1.F;
}

// Without a projection it is the identity, so that every text tower has the same form.
nn::Linear projection(const TextTransformerConfig& config, const ParamSource& params) {
  if (config.output_dim > 0) return {config.embed_dim, config.output_dim, config.projection_bias, params.child("proj")};
  RandomParams none;
  return {config.embed_dim, config.embed_dim, false, ParamSource(none, params.path()).child("proj"), {identity, {}}};
}

// The position of the token whose output is the embedding; `length` if there is none.
int64_t pooled_position(const int64_t* ids, int64_t length, const TextTransformerConfig& config) {
  if (config.pool == TextPool::last) return length - 1;
  if (config.pool == TextPool::largest_id) return std::max_element(ids, ids + length) - ids;
  return std::find(ids, ids + length, config.eos_token_id) - ids;
}

}  // namespace

Tensor causal_mask(int64_t n) {
  Tensor mask = Tensor::zeros({1, 1, n, n});
  for (int64_t row = 0; row < n; ++row) {
    float* const values = mask.data<float>() + row * n;
    std::fill(values + row + 1, values + n, -std::numeric_limits<float>::infinity());
  }
  return mask;
}

TextTransformer::TextTransformer(const TextTransformerConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(checked(config)),
      token_embedding_(
          params.get("token_embedding.weight", {config.vocab_size, config.embed_dim}, nn::init::normal(0.02))),
      positional_embedding_(params.get("positional_embedding",
                                       {config.context_length + (config.class_token ? 1 : 0), config.embed_dim},
                                       nn::init::normal(0.01))),
      cls_emb_(config.class_token ? params.get("cls_emb", {config.embed_dim}, nn::init::normal(0.01)) : Tensor()),
      blocks_("blocks"),
      norm_(config.embed_dim, config.norm_eps, params.child("norm")),
      proj_(projection(config, params)) {
  for (int64_t i = 0; i < config.depth; ++i) {
    blocks_.emplace_back(block_config(config), params.child("blocks").child(i));
  }
}

Tensor TextTransformer::pooled_rows(const Tensor& ids) const {
  const int64_t batch = ids.size(0), length = ids.size(1);
  if (config_.class_token) {
    const Tensor rows = Tensor::empty({batch}, DType::i64);
    for (int64_t b = 0; b < batch; ++b) rows.data<int64_t>()[b] = b * (length + 1) + length;
    return rows;
  }
  const Tensor dense = ids.to(DType::i64).contiguous(), rows = Tensor::empty({batch}, DType::i64);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t position = pooled_position(dense.data<int64_t>() + b * length, length, config_);
    if (position == length) {
      throw Error(str("text ", b), str("the end-of-text token ", config_.eos_token_id), "none");
    }
    rows.data<int64_t>()[b] = b * length + position;
  }
  return rows;
}

// OpenCLIP's mask of CoCa is shifted by one: the first pad token is seen, and the class token only behind a text
// without padding.  The published weights are trained with it.
Tensor TextTransformer::padding_mask(const Tensor& ids) const {
  if (!config_.class_token) return {};
  const int64_t batch = ids.size(0), length = ids.size(1), total = length + 1;
  const Tensor dense = ids.to(DType::i64).contiguous();
  const Tensor causal = config_.causal ? causal_mask(total) : Tensor::zeros({1, 1, total, total});
  Tensor mask = causal.expand({batch, 1, total, total}).clone();
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t* const text = dense.data<int64_t>() + b * length;
    for (int64_t key = 1; key < total; ++key) {
      if (text[key - 1] != config_.pad_token_id) continue;
      float* const column = mask.data<float>() + b * total * total + key;
      for (int64_t query = 0; query < total; ++query) column[query * total] = -std::numeric_limits<float>::infinity();
    }
  }
  return mask;
}

// [B, T, C]
Tensor TextTransformer::embedded(const Tensor& ids) const {
  const Tensor tokens = ops::embedding(ids, token_embedding_);
  if (!config_.class_token) return ops::add(tokens, positional_embedding_.narrow(0, 0, ids.size(1)));
  const Tensor last = cls_emb_.view({1, 1, config_.embed_dim}).expand({ids.size(0), 1, config_.embed_dim});
  return ops::add(ops::cat({tokens, last}, 1), positional_embedding_);
}

Tensor TextTransformer::forward(const Tensor& ids, const Tensor& rows, const Tensor& padding_mask) const {
  const int64_t min_length = config_.class_token ? config_.context_length : 1;
  if (ids.rank() != 2 || ids.size(1) < min_length || ids.size(1) > config_.context_length) {
    throw Error("text tower", str("ids [B, N] with N from ", min_length, " to ", config_.context_length),
                ids.shape().to_string());
  }
  Tensor x = embedded(ids);
  nn::trace(*this, "embedded", x);
  const Tensor mask = config_.causal && !config_.class_token ? causal_mask(ids.size(1)) : padding_mask;
  for (const nn::Block& block : blocks_) x = block.feed_forward(block.attend(x, {.bias = mask}));
  x = norm_.forward(x);
  const Tensor pooled = ops::embedding(rows, x.view({-1, config_.embed_dim}));
  nn::trace(*this, "pooled", pooled);
  return nn::traced(*this, proj_.forward(pooled));
}

void TextTransformer::visit(nn::Visitor& visitor) {
  visitor.parameter("token_embedding.weight", token_embedding_);
  visitor.parameter("positional_embedding", positional_embedding_);
  if (cls_emb_.defined()) visitor.parameter("cls_emb", cls_emb_);
  visitor.child("blocks", static_cast<nn::Module&>(blocks_));
  visitor.child("norm", static_cast<nn::Module&>(norm_));
  visitor.child("proj", static_cast<nn::Module&>(proj_));
}

}  // namespace vitrail::models
