// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/hiera/hiera.h"

#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/nn/init.h"
#include "vitrail/nn/positional_encoding.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/max_pool.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/ops/window.h"

namespace vitrail::models {
namespace {

constexpr int64_t kKernel = 7, kPadding = 3;  // The patch embedding is such a convolution.

Shape position_shape(const HieraConfig& config) {
  const auto [rows, columns] = config.positions;
  const int64_t dim = config.stages.front().dim;
  return config.window_positions > 0 ? Shape{1, dim, rows, columns} : Shape{1, rows * columns, dim};
}

const HieraConfig& checked(const HieraConfig& config, const std::string& where) {
  static_cast<void>(hiera_blocks(config, where));
  return config;
}

// positions [1, n, n, C] over a map, whose last rows and columns may have a part of them.
Tensor repeated(const Tensor& positions, int64_t height, int64_t width) {
  const auto along = [](const Tensor& x, int axis, int64_t extent) {
    std::vector<Tensor> parts;
    const int64_t side = x.size(axis);
    for (int64_t first = 0; first < extent; first += side)
      parts.push_back(x.narrow(axis, 0, std::min(side, extent - first)));
    return ops::cat(parts, axis);
  };
  return along(along(positions, 1, height), 2, width);
}

}  // namespace

HieraAttention::HieraAttention(const HieraBlockConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      qkv_(config.in_dim, 3 * config.dim, true, params.child("qkv")),
      proj_(config.dim, config.dim, true, params.child("proj")) {}

// Windows [B, n, n, 3·C] → [B, n·n/4, C].
Tensor HieraAttention::pooled(const Tensor& windows) const {
  const int64_t batch = windows.size(0), heads = config_.num_heads, head_dim = config_.dim / heads;
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  const Tensor queries = ops::max_pool_2x2(windows.narrow(3, 0, config_.dim));
  const auto by_heads = [&](const Tensor& x) { return x.view({batch, -1, heads, head_dim}).transpose(1, 2); };
  const Tensor keys = ops::contiguous(windows.narrow(3, config_.dim, config_.dim));
  const Tensor values = ops::contiguous(windows.narrow(3, 2 * config_.dim, config_.dim));
  return ops::attention(by_heads(queries), by_heads(keys), by_heads(values), scale).out;
}

Tensor HieraAttention::forward(const Tensor& x) const {
  const int64_t height = x.size(1), width = x.size(2), window = config_.window, shrink = config_.pools ? 2 : 1;
  const double scale = 1 / std::sqrt(static_cast<double>(config_.dim / config_.num_heads));
  Tensor qkv = qkv_.forward(x);
  if (window > 0)
    qkv = ops::window_partition(qkv, window, qkv_.parameter("bias")).view({-1, window, window, 3 * config_.dim});
  Tensor out = config_.pools
                   ? pooled(qkv)
                   : ops::self_attention(qkv.view({qkv.size(0), -1, 3 * config_.dim}), config_.num_heads, scale);
  const int64_t rows = height / shrink, columns = width / shrink;
  out = window > 0 ? ops::window_unpartition(out, window / shrink, rows, columns)
                   : out.view({x.size(0), rows, columns, config_.dim});
  return traced(*this, proj_.forward(out));
}

void HieraAttention::visit(nn::Visitor& visitor) {
  visitor.child("qkv", static_cast<nn::Module&>(qkv_));
  visitor.child("proj", static_cast<nn::Module&>(proj_));
}

HieraBlock::HieraBlock(const HieraBlockConfig& config, double norm_eps, const ParamSource& params)
    : Module(params.path()),
      pools_(config.pools),
      norm1_(config.in_dim, norm_eps, params.child("norm1")),
      attn_(config, params.child("attn")),
      norm2_(config.dim, norm_eps, params.child("norm2")),
      mlp_({.in_features = config.dim, .hidden_features = config.mlp_hidden}, params.child("mlp")) {
  if (config.in_dim != config.dim) proj_.emplace(config.in_dim, config.dim, true, params.child("proj"));
}

Tensor HieraBlock::shortcut(const Tensor& x, const Tensor& normed) const {
  if (!proj_) return x;
  const Tensor projected = proj_->forward(normed);
  return pools_ ? ops::max_pool_2x2(projected) : projected;
}

Tensor HieraBlock::forward(const Tensor& x) const {
  const Tensor normed = norm1_.forward(x);
  const Tensor attended = ops::residual_add(shortcut(x, normed), attn_.forward(normed));
  return traced(*this, ops::residual_add(attended, mlp_.forward(norm2_.forward(attended))));
}

void HieraBlock::visit(nn::Visitor& visitor) {
  visitor.child("norm1", static_cast<nn::Module&>(norm1_));
  visitor.child("attn", static_cast<nn::Module&>(attn_));
  visitor.child("norm2", static_cast<nn::Module&>(norm2_));
  visitor.child("mlp", static_cast<nn::Module&>(mlp_));
  if (proj_) visitor.child("proj", static_cast<nn::Module&>(*proj_));
}

HieraTrunk::HieraTrunk(const HieraConfig& config, const ParamSource& params, const std::string& where)
    : Module(params.path()),
      config_(checked(config, where)),
      patch_embed_({.in_chans = config.in_chans,
                    .out_chans = config.stages.front().dim,
                    .kernel = kKernel,
                    .stride = kHieraStride,
                    .padding = kPadding},
                   params.child("patch_embed.proj")),
      pos_embed_(params.get("pos_embed", position_shape(config), nn::init::zeros())),
      blocks_(params.child("blocks").path()) {
  const int64_t window = config.window_positions;
  if (window > 0)
    pos_embed_window_ =
        params.get("pos_embed_window", {1, config.stages.front().dim, window, window}, nn::init::zeros());
  for (const HieraBlockConfig& block : hiera_blocks(config_, where))
    blocks_.emplace_back(block, config.norm_eps, params.child("blocks").child(static_cast<int64_t>(blocks_.size())));
}

Tensor HieraTrunk::positions(int64_t height, int64_t width) const {
  const int64_t dim = config_.stages.front().dim;
  if (pos_embed_.is_meta()) return Tensor::empty({1, height, width, dim}, pos_embed_.dtype(), Device::meta);
  const auto [rows, columns] = config_.positions;
  const bool by_window = pos_embed_window_.defined();
  const Tensor learned =
      by_window ? ops::contiguous(pos_embed_.permute({0, 2, 3, 1})).view({1, rows * columns, dim}) : pos_embed_;
  const Tensor map = nn::resample_positions(learned, 0, {rows, columns}, {height, width}, {.antialias = false})
                         .view({1, height, width, dim});
  if (!by_window) return map;
  return ops::add(map, repeated(ops::contiguous(pos_embed_window_.permute({0, 2, 3, 1})), height, width));
}

std::vector<Tensor> HieraTrunk::forward(const Tensor& images) const {
  const int64_t multiple = config_.image_multiple();
  if (images.rank() != 4 || images.size(2) % multiple != 0 || images.size(3) % multiple != 0) {
    throw Error("Hiera", str("images [B, ", config_.in_chans, ", H, W] with sides that ", multiple, " divides"),
                images.shape().to_string());
  }
  const Tensor patches = patch_embed_.forward(ops::contiguous(images.permute({0, 2, 3, 1})));
  Tensor x = ops::add(patches, positions(patches.size(1), patches.size(2)));
  std::vector<Tensor> maps;
  size_t block = 0;
  for (const HieraStage& stage : config_.stages) {
    for (int64_t i = 0; i < stage.depth; ++i) x = blocks_[block++].forward(x);
    maps.push_back(x);
  }
  return maps;
}

void HieraTrunk::visit(nn::Visitor& visitor) {
  visitor.parameter("pos_embed", pos_embed_);
  visitor.parameter("pos_embed_window", pos_embed_window_);
  visitor.child("patch_embed.proj", static_cast<nn::Module&>(patch_embed_));
  visitor.child("blocks", static_cast<nn::Module&>(blocks_));
}

}  // namespace vitrail::models
