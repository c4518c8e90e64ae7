// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/patch_embed.h"

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/patchify.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {
namespace {

std::string size_text(int64_t height, int64_t width) { return str(height, "×", width); }

void check_divides(const PatchEmbedConfig& config, int64_t height, int64_t width) {
  const auto [patch_height, patch_width] = config.patch_size;
  if (patch_height < 1 || patch_width < 1) {
    throw Error("patch_embed", "a patch of at least 1×1", size_text(patch_height, patch_width));
  }
  const bool divides = height >= patch_height && width >= patch_width &&
                       (config.allow_remainder || (height % patch_height == 0 && width % patch_width == 0));
  if (!divides) {
    throw Error("patch_embed",
                str("an image size that the patch size ", size_text(patch_height, patch_width), " divides"),
                size_text(height, width));
  }
}

// Checks sizes before parameters are allocated.
const PatchEmbedConfig& checked(const PatchEmbedConfig& config) {
  check_divides(config, config.img_size[0], config.img_size[1]);
  return config;
}

}  // namespace

PatchProjection::PatchProjection(const PatchEmbedConfig& config, const ParamSource& params) : Module(params.path()) {
  const auto [patch_height, patch_width] = config.patch_size;
  const auto init =
      init::linear(config.init, init::Role::patch, config.in_chans * patch_height * patch_width, config.embed_dim);
  weight_ = params.get("weight", {config.embed_dim, config.in_chans, patch_height, patch_width}, init.weight);
  if (config.bias) bias_ = params.get("bias", {config.embed_dim}, init.bias);
}

Tensor PatchProjection::forward(const Tensor& patches) const {
  return ops::linear(patches, weight_.view({weight_.size(0), -1}), bias_);
}

std::string PatchProjection::extra() const {
  const std::string patch = str("(", weight_.size(2), ", ", weight_.size(3), ")");
  return str(weight_.size(1), ", ", weight_.size(0), ", kernel_size=", patch, ", stride=", patch,
             bias_.defined() ? "" : ", bias=False");
}

void PatchProjection::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_);
  visitor.parameter("bias", bias_);
}

PatchEmbed::PatchEmbed(const PatchEmbedConfig& config, const ParamSource& params)
    : Module(params.path()), config_(checked(config)), proj_(config, params.child("proj")) {
  const int64_t pixels = config.in_chans * config.patch_size[0] * config.patch_size[1];
  if (config.input_norm_eps)
    input_norm_.emplace(pixels, *config.input_norm_eps, params.child("input_norm"), config.norm_layer);
  if (config.norm_eps) norm_.emplace(config.embed_dim, *config.norm_eps, params.child("norm"), config.norm_layer);
}

std::array<int64_t, 2> PatchEmbed::grid_of(int64_t height, int64_t width) const {
  if (!config_.dynamic_img_size && (height != config_.img_size[0] || width != config_.img_size[1])) {
    throw Error("patch_embed", str("an image of ", size_text(config_.img_size[0], config_.img_size[1])),
                size_text(height, width));
  }
  check_divides(config_, height, width);
  return {height / config_.patch_size[0], width / config_.patch_size[1]};
}

Tensor PatchEmbed::forward(const Tensor& image) const {
  if (image.rank() != 4 || image.size(1) != config_.in_chans) {
    throw Error("patch_embed", str("images [B, ", config_.in_chans, ", H, W]"), image.shape().to_string());
  }
  const auto [rows, columns] = grid_of(image.size(2), image.size(3));
  Tensor patches = ops::patchify(image, config_.patch_size[0], config_.patch_size[1]);  // [B, N, C·P·P]
  if (input_norm_) patches = input_norm_->forward(patches);
  Tensor tokens = proj_.forward(patches);                               // [B, N, D]
  auto as_map = [&, rows = rows, columns = columns](const Tensor& t) {  // [B, N, D] → [B, D, h, w]
    return t.view({image.size(0), rows, columns, config_.embed_dim}).permute({0, 3, 1, 2});
  };
  if (tracing()) {
    const Tensor flattened = traced(proj_, as_map(tokens)).flatten(2);
    trace(*this, "flattened", flattened);
    tokens = flattened.transpose(1, 2);
    trace(*this, "transposed", tokens);
  }
  if (norm_) {
    tokens = norm_->forward(tokens);
  } else {
    trace(*this, "norm", tokens);
  }
  return traced(*this, config_.flatten ? tokens : ops::contiguous(as_map(tokens)));
}

void PatchEmbed::visit(Visitor& visitor) {
  if (input_norm_) visitor.child("input_norm", input_norm_);
  visitor.child("proj", static_cast<Module&>(proj_));
  visitor.child("norm", norm_);
}

}  // namespace vitrail::nn
