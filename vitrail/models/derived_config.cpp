// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/derived_config_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/models/preprocessing.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/nn/swiglu.h"

namespace vitrail::models {
namespace {

void check_range(const char* field, int64_t value, int64_t min, int64_t max) {
  if (value < min || value > max) throw Error(field, str("a value from ", min, " to ", max), str(value));
}

// Above any published model; products of two limits do not overflow.
constexpr int64_t kMaxWidth = 1 << 20, kMaxDepth = 4096, kMaxHidden = kMaxWidth * 16;

// Ratios whose products with a width are integers; the products have limits of their own.
void check_ratio(const char* field, double ratio) {
  if (!(ratio >= 0 && ratio <= kMaxHidden)) throw Error(field, str("a number from 0 to ", kMaxHidden), str(ratio));
}

// Finite in f32, too.
void check_finite(const char* field, double value) {
  if (!std::isfinite(static_cast<float>(value))) throw Error(field, "a finite number", str(value));
}

void check_relative_positions(const VisionTransformerConfig& config) {
  if (!config.use_rel_pos_bias && !config.use_shared_rel_pos_bias) return;
  if (!config.class_token || config.dist_token || config.reg_tokens > 0) {
    throw Error("use_rel_pos_bias", "a class token and no other prefix token", "another combination");
  }
  if (config.patch_drop_rate > 0) {
    throw Error("patch_drop_rate", "0 with a relative position bias, which is for all patches",
                str(config.patch_drop_rate));
  }
}

void check_rotary(const VisionTransformerConfig& config) {
  if (config.qk_norm) throw Error("use_rot_pos_emb", "a model without qk_norm", "both");
  if (!(config.rope_temperature > 0))
    throw Error("rope_temperature", "a positive number", str(config.rope_temperature));
  check_finite("rope_temperature", config.rope_temperature);
  check_finite("rope_grid_offset", config.rope_grid_offset);
  if (config.rope_type == nn::RotaryType::mixed && config.rope_rotate_half) {
    throw Error("rope_rotate_half", "false with rope_type mixed", "true");
  }
  for (const int64_t side : config.ref_feat_shape.value_or(std::array<int64_t, 2>{1, 1})) {
    check_range("ref_feat_shape", side, 1, kMaxPixels);
  }
  for (const double period : config.rope_periods) {
    if (!(period > 0)) throw Error("rope_periods", "positive numbers", str(period));
    check_finite("rope_periods", period);
  }
}

}  // namespace

const VisionTransformerConfig& checked(const VisionTransformerConfig& config) {
  for (const int64_t side : config.img_size) check_range("img_size", side, 1, kMaxPixels);
  for (const int64_t side : config.patch_size) check_range("patch_size", side, 1, kMaxPixels);
  check_range("in_chans", config.in_chans, 1, 1024);
  check_range("num_classes", config.num_classes, 0, kMaxWidth * 64);
  check_range("embed_dim", config.embed_dim, 1, kMaxWidth);
  check_range("depth", config.depth, 0, kMaxDepth);
  check_range("num_heads", config.num_heads, 1, kMaxWidth);
  if (config.head_dim) check_range("head_dim", *config.head_dim, 1, kMaxWidth);
  check_ratio("mlp_ratio", config.mlp_ratio);
  check_ratio("attn_pool_mlp_ratio", config.attn_pool_mlp_ratio.value_or(0));
  check_range("swiglu_align_to", config.swiglu_align_to, 0, kMaxWidth);
  check_range("mlp_ratio (the MLP's hidden width)", mlp_hidden_of(config), 1, kMaxHidden);
  if (config.global_pool == GlobalPool::map) {
    check_range("attn_pool_mlp_ratio (the MLP's hidden width)", pool_mlp_hidden_of(config), 0, kMaxHidden);
    check_range("attn_pool_dim", config.attn_pool_dim, 0, kMaxWidth);
  } else if (config.pool_include_prefix || config.attn_pool_dim > 0) {
    throw Error(config.pool_include_prefix ? "pool_include_prefix" : "attn_pool_dim", "global_pool map",
                "another pooling");
  }
  check_relative_positions(config);
  const bool has_prefix = config.class_token || config.dist_token || config.reg_tokens > 0;
  if (config.pos_embed == PositionEmbedding::sincos2d && has_prefix && !config.no_embed_class) {
    throw Error("pos_embed", "no_embed_class with sincos2d, which is for patches", "positions of prefix tokens");
  }
  check_range("reg_tokens", config.reg_tokens, 0, 4096);
  check_range("head_hidden", config.head_hidden, 0, kMaxWidth);
  if (!(config.norm_eps >= 0 && config.norm_eps < 1))
    throw Error("norm_eps", "a value in [0, 1)", str(config.norm_eps));
  const bool needs_class = config.global_pool == GlobalPool::token || config.global_pool == GlobalPool::token_avg;
  if (needs_class && !config.class_token) {
    throw Error("global_pool", "avg or \"\" without a class token", "a pooling that reads the class token");
  }
  if (config.dist_token && !(config.class_token && config.global_pool == GlobalPool::token)) {
    throw Error("dist_token", "a class token and global_pool token", "another combination");
  }
  check_finite("qk_scale", config.qk_scale.value_or(1));
  check_finite("init_values", config.init_values.value_or(1));
  nn::checked_probability(config.patch_drop_rate, "patch_drop_rate");
  if (config.use_rot_pos_emb) check_rotary(config);
  scheme_of(config);
  head_activation(config);
  return config;
}

bool has_swiglu(const VisionTransformerConfig& config) {
  return config.swiglu_mlp || config.mlp_layer != MlpLayer::mlp;
}

int64_t pooled_width_of(const VisionTransformerConfig& config) {
  if (config.attn_pool_dim > 0) return config.attn_pool_dim;
  return config.embed_dim * (config.global_pool == GlobalPool::token_avg ? 2 : 1);
}

int64_t feature_width_of(const VisionTransformerConfig& config) {
  return config.head_hidden > 0 ? config.head_hidden : pooled_width_of(config);
}

int64_t mlp_hidden_of(const VisionTransformerConfig& config) {
  if (config.mlp_hidden) return *config.mlp_hidden;
  const auto nominal = static_cast<int64_t>(static_cast<double>(config.embed_dim) * config.mlp_ratio);
  if (config.swiglu_mlp) {
    const int64_t step = std::max<int64_t>(config.swiglu_align_to, 1);
    return round_up(nominal, step);
  }
  switch (config.mlp_layer) {
    case MlpLayer::swiglu:
      return nn::dinov2_swiglu_hidden(nominal);
    case MlpLayer::swiglu_packed:
      return nominal / 2;
    case MlpLayer::mlp:
      break;
  }
  return nominal;
}

int64_t pool_mlp_hidden_of(const VisionTransformerConfig& config) {
  if (config.mlp_hidden && !config.attn_pool_mlp_ratio) return *config.mlp_hidden;
  const double ratio = config.attn_pool_mlp_ratio.value_or(config.mlp_ratio);
  return static_cast<int64_t>(static_cast<double>(config.embed_dim) * ratio);
}

nn::init::Scheme scheme_of(const VisionTransformerConfig& config) {
  using nn::init::Scheme;
  if (config.weight_init.empty()) return Scheme::timm;
  if (config.weight_init == "jax") return Scheme::jax;
  if (config.weight_init == "jax_nlhb") return Scheme::jax_nlhb;
  if (config.weight_init == "moco") return Scheme::moco;
  if (config.weight_init == "xavier") return Scheme::xavier;
  if (config.weight_init == "torch") return Scheme::torch;
  throw Error("weight_init", "\"\", jax, jax_nlhb, moco, xavier or torch", "'" + config.weight_init + "'");
}

kernels::Activation head_activation(const VisionTransformerConfig& config) {
  return kernels::activation_from_name(config.head_act);
}

TokenInit token_init_of(const VisionTransformerConfig& config) {
  switch (scheme_of(config)) {
    case nn::init::Scheme::torch:
      return {nn::init::normal(1.0), nn::init::normal(1.0)};  // learnpytorch.io
    case nn::init::Scheme::xavier:
      return {nn::init::zeros(), nn::init::normal(0.02)};  // google-research/vision_transformer
    default:
      return {nn::init::normal(1e-6), nn::init::truncated_normal(0.02)};  // timm
  }
}

}  // namespace vitrail::models
