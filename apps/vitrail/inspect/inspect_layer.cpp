// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/inspect/inspect_layer.h"

#include "apps/vitrail/inspect/layer_run.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"
#include "vitrail/base/npy.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/downsampled_attention.h"
#include "vitrail/nn/multihead_attention.h"
#include "vitrail/nn/patch_embed.h"
#include "vitrail/nn/positional_encoding.h"

namespace vitrail::app {
namespace {

void patch_embed(LayerRun& run) {
  LayerSettings& set = run.settings();
  const int64_t image = set.integer("img_size", 224), patch = set.integer("patch_size", 16);
  nn::PatchEmbedConfig config{.img_size = {image, image}, .patch_size = {patch, patch}};
  config.in_chans = set.integer("in_chans", 3);
  config.embed_dim = set.integer("embed_dim", 768);
  if (set.flag("norm", false)) config.norm_eps = 1e-5;
  config.flatten = set.flag("flatten", true);
  const Tensor x = run.input("x", {run.batch(), config.in_chans, image, image});
  const nn::PatchEmbed layer(config, run.params());
  run.show(layer, [&] { return LayerRun::Values{{"out", layer.forward(x)}}; });
}

// The attention of `attention` and `block`.
nn::AttentionConfig attention_config(LayerSettings& set, int64_t dim) {
  nn::AttentionConfig config{.dim = set.integer("dim", dim), .num_heads = set.integer("num_heads", 8)};
  config.qkv_bias = set.flag("qkv_bias", false);
  config.qk_norm = set.flag("qk_norm", false);
  config.split = set.flag("split", false);
  return config;
}

void attention(LayerRun& run) {
  const nn::AttentionConfig config = attention_config(run.settings(), 512);
  const Tensor x = run.input("x", {run.batch(), run.settings().integer("tokens", 10), config.dim});
  const nn::Attention layer(config, run.params());
  run.show(layer, [&] { return LayerRun::Values{{"out", layer.forward(x)}}; });
}

void block(LayerRun& run) {
  LayerSettings& set = run.settings();
  nn::BlockConfig config{.attention = attention_config(set, 384)};
  config.mlp_hidden = static_cast<int64_t>(static_cast<double>(config.attention.dim) * set.number("mlp_ratio", 4));
  config.activation = kernels::activation_from_name(set.text("act_layer", "gelu"));
  config.norm_first = set.flag("norm_first", true);
  if (const double gamma = set.number("init_values", 0); gamma > 0) config.init_values = gamma;
  const Tensor x = run.input("x", {run.batch(), set.integer("tokens", 65), config.attention.dim});
  const nn::Block layer(config, run.params());
  run.show(layer, [&] { return LayerRun::Values{{"out", layer.forward(x)}}; });
}

void mlp(LayerRun& run) {
  LayerSettings& set = run.settings();
  nn::MlpConfig config{.in_features = set.integer("in_features", 384)};
  config.hidden_features = set.integer("hidden_features", 4 * config.in_features);
  config.out_features = set.integer("out_features", config.in_features);
  config.activation = kernels::activation_from_name(set.text("act_layer", "gelu"));
  config.sam_names = set.flag("sam_names", false);
  if (set.flag("norm", false)) config.norm_eps = 1e-5;
  const Tensor x = run.input("x", {run.batch(), set.integer("tokens", 65), config.in_features});
  const nn::Mlp layer(config, run.params());
  run.show(layer, [&] { return LayerRun::Values{{"out", layer.forward(x)}}; });
}

// mask=none, causal, or a NumPy file [T, S]: integers with 0 where a key is ignored, or floats that are added.
void set_mask(const std::string& mask, int64_t queries, int64_t keys, nn::AttentionMasks& masks) {
  if (mask == "none") return;
  if (mask == "causal") {
    masks.attn_mask = Tensor::zeros({queries, keys}, DType::u8);
    for (int64_t i = 0; i < queries * keys; ++i) masks.attn_mask.data<uint8_t>()[i] = i % keys <= i / keys;
    return;
  }
  const NpyArray array = read_npy(mask);
  const Shape shape{std::span<const int64_t>(array.shape)};
  if (array.dtype == DType::i64) masks.attn_mask = Tensor::from<int64_t>(shape, array.i64);
  if (array.dtype == DType::f32) masks.attn_bias = Tensor::from<float>(shape, array.f32);
  if (array.dtype == DType::f64) masks.attn_bias = Tensor::from<double>(shape, array.f64);
}

// The last `count` of the keys are padding.
Tensor padding_mask(int64_t count, int64_t batch, int64_t keys) {
  const Tensor mask = Tensor::zeros({batch, keys}, DType::boolean);
  for (int64_t i = 0; i < batch * keys; ++i) mask.data<bool>()[i] = i % keys >= keys - count;
  return mask;
}

void multihead_attention(LayerRun& run) {
  LayerSettings& set = run.settings();
  nn::MultiheadAttentionConfig config{.embed_dim = set.integer("embed_dim", 48),
                                      .num_heads = set.integer("num_heads", 4)};
  config.bias = set.flag("bias", true);
  const int64_t queries = set.integer("queries", 17), keys = set.integer("keys", queries);
  const std::string mask = set.text("mask", "none");
  const int64_t padding = set.integer("padding", 0, 0);
  const bool need_weights = set.flag("need_weights", true), average = set.flag("average_weights", true);
  const Tensor query = run.input("query", {run.batch(), queries, config.embed_dim});
  const Tensor memory = keys == queries ? query : run.input("key_value", {run.batch(), keys, config.embed_dim});
  nn::AttentionMasks masks;
  set_mask(mask, queries, keys, masks);
  if (padding > 0) masks.key_padding_mask = padding_mask(padding, run.batch(), keys);
  const nn::MultiheadAttention layer(config, run.params());
  run.show(layer, [&] {
    const auto result = layer.forward(query, memory, memory, masks, need_weights, average);
    return LayerRun::Values{{"out", result.out}, {"returned_weights", result.weights}};
  });
}

void downsampled_attention(LayerRun& run) {
  LayerSettings& set = run.settings();
  nn::DownsampledAttentionConfig config{.embedding_dim = set.integer("embedding_dim", 256)};
  config.num_heads = set.integer("num_heads", 8);
  config.downsample_rate = set.integer("downsample_rate", 2);
  const int64_t queries = set.integer("queries", 5), keys = set.integer("keys", 64);
  const Tensor q = run.input("q", {run.batch(), queries, config.embedding_dim});
  const Tensor k = run.input("k", {run.batch(), keys, config.embedding_dim});
  const Tensor v = run.input("v", {run.batch(), keys, config.embedding_dim});
  const nn::DownsampledAttention layer(config, run.params());
  run.show(layer, [&] { return LayerRun::Values{{"out", layer.forward(q, k, v)}}; });
}

void layer_norm(LayerRun& run) {
  LayerSettings& set = run.settings();
  const int64_t features = set.integer("features", 384), tokens = set.integer("tokens", 65);
  const double eps = set.number("eps", 1e-6);
  const Tensor x = run.input("x", {run.batch(), tokens, features});
  const nn::LayerNorm layer(features, eps, run.params());
  run.show(layer, [&] { return LayerRun::Values{{"out", layer.forward(x)}}; });
}

void layer_norm_2d(LayerRun& run) {
  LayerSettings& set = run.settings();
  const int64_t channels = set.integer("channels", 32), height = set.integer("height", 6);
  const int64_t width = set.integer("width", 6);
  const double eps = set.number("eps", 1e-6);
  const Tensor x = run.input("x", {run.batch(), channels, height, width});
  const nn::LayerNorm2d layer(channels, run.params(), eps);
  run.show(layer, [&] { return LayerRun::Values{{"out", layer.forward(x)}}; });
}

void positional_encoding(LayerRun& run) {
  LayerSettings& set = run.settings();
  const int64_t dim = set.integer("dim", 48), tokens = set.integer("tokens", 17);
  const int64_t max_len = set.integer("max_len", 1000);
  const Tensor x = run.input("x", {run.batch(), tokens, dim});
  const nn::PositionalEncoding layer(dim, 0, max_len, "positional_encoding");
  run.show(layer, [&] { return LayerRun::Values{{"out", layer.forward(x)}}; });
}

struct Layer {
  const char *name, *about;
  void (*run)(LayerRun& run);
};

constexpr Layer kLayers[] = {
    {"patch_embed", "timm's PatchEmbed: an image to a sequence of tokens", patch_embed},
    {"attention", "timm's Attention: multi-head self-attention with one qkv matrix", attention},
    {"multihead_attention", "query, key and value inputs, masks (mask=causal or FILE.npy; padding=K), returned weights",
     multihead_attention},
    {"downsampled_attention", "Attention of Segment Anything's mask decoder", downsampled_attention},
    {"mlp", "timm's Mlp; with sam_names=true, Segment Anything's MLPBlock", mlp},
    {"block", "timm's Block: attention and MLP with their residual sums", block},
    {"layer_norm", "LayerNorm over the last axis", layer_norm},
    {"layer_norm_2d", "Segment Anything's LayerNorm2d: over the channels of a feature map", layer_norm_2d},
    {"positional_encoding", "x + the sinusoidal table of Vaswani et al. (2017)", positional_encoding},
};

const Layer& find(const std::string& name) {
  std::vector<std::string> names;
  for (const Layer& layer : kLayers) {
    if (name == layer.name) return layer;
    names.emplace_back(layer.name);
  }
  const std::vector<std::string> near = near_names(name, names);
  throw Error("layer:" + name, "a layer that `vitrail inspect layer:` lists",
              near.empty() ? "no such layer" : "no such layer; did you mean layer:" + near.front() + "?");
}

}  // namespace

void print_layer(const LayerOptions& options) {
  if (!options.name.empty()) {
    LayerRun run(options);
    return find(options.name).run(run);
  }
  for (const Layer& layer : kLayers) print_output("layer:{:22s} {}\n", layer.name, layer.about);
}

}  // namespace vitrail::app
