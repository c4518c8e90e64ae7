// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/image_encoder.h"

#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/relative_attention.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/ops/window.h"

namespace vitrail::models {
Tensor relative_position_table(const Tensor& table, int64_t positions) {
  const int64_t length = 2 * positions - 1;
  if (table.size(0) == length) return table;
  const Tensor columns = ops::contiguous(table.transpose(0, 1)).view({table.size(1), 1, table.size(0)});
  return ops::contiguous(ops::resize_bilinear(columns, 1, length).squeeze(1).transpose(0, 1));
}

SamAttention::SamAttention(const SamEncoderConfig& config, const SamBlockConfig& block, const ParamSource& params)
    : Module(params.path()),
      num_heads_(config.num_heads),
      head_dim_(config.head_dim),
      window_(block.window),
      qkv_bias_(config.qkv_bias),
      qkv_(config.dim, 3 * config.num_heads * config.head_dim, config.qkv_bias, params.child("qkv")),
      proj_(config.num_heads * config.head_dim, config.dim, true, params.child("proj")),
      rel_pos_h_(params.get("rel_pos_h", {block.table_length, config.head_dim}, nn::init::zeros())),
      rel_pos_w_(params.get("rel_pos_w", {block.table_length, config.head_dim}, nn::init::zeros())) {}

Tensor SamAttention::forward(const Tensor& x) const {
  const int64_t height = x.size(1), width = x.size(2), inner = num_heads_ * head_dim_;
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim_));
  Tensor qkv = qkv_.forward(x);
  const std::array<int64_t, 2> grid = window_ > 0 ? std::array{window_, window_} : std::array{height, width};
  if (window_ > 0) {
    qkv = ops::window_partition(qkv, window_, qkv_bias_ ? qkv_.parameter("bias") : Tensor());
    trace(*this, "qkv_windows", qkv);
  }
  qkv = qkv.view({-1, grid[0] * grid[1], 3 * inner});
  Tensor out = ops::relative_self_attention(qkv, num_heads_, scale, relative_position_table(rel_pos_h_, grid[0]),
                                            relative_position_table(rel_pos_w_, grid[1]), grid);
  out =
      window_ > 0 ? ops::window_unpartition(out, window_, height, width) : out.view({x.size(0), height, width, inner});
  return traced(*this, proj_.forward(out));
}

void SamAttention::visit(nn::Visitor& visitor) {
  visitor.parameter("rel_pos_h", rel_pos_h_);
  visitor.parameter("rel_pos_w", rel_pos_w_);
  visitor.child("qkv", static_cast<nn::Module&>(qkv_));
  visitor.child("proj", static_cast<nn::Module&>(proj_));
}

SamBlock::SamBlock(const SamEncoderConfig& config, const SamBlockConfig& block, const ParamSource& params)
    : Module(params.path()),
      norm1_(config.dim, config.norm_eps, params.child("norm1")),
      attn_(config, block, params.child("attn")),
      norm2_(config.dim, config.norm_eps, params.child("norm2")),
      mlp_({.in_features = config.dim, .hidden_features = config.mlp_hidden, .sam_names = true}, params.child("mlp")) {}

Tensor SamBlock::forward(const Tensor& x) const {
  const Tensor attended = ops::residual_add(x, attn_.forward(norm1_.forward(x)));
  return traced(*this, ops::residual_add(attended, mlp_.forward(norm2_.forward(attended))));
}

void SamBlock::visit(nn::Visitor& visitor) {
  visitor.child("norm1", static_cast<nn::Module&>(norm1_));
  visitor.child("attn", static_cast<nn::Module&>(attn_));
  visitor.child("norm2", static_cast<nn::Module&>(norm2_));
  visitor.child("mlp", static_cast<nn::Module&>(mlp_));
}

SamNeck::SamNeck(int64_t dim, int64_t out_chans, const ParamSource& params)
    : Module(params.path()),
      conv1_({.in_chans = dim, .out_chans = out_chans, .bias = false}, params.child("0")),
      norm1_(out_chans, kSamNormEps, params.child("1")),
      conv2_({.in_chans = out_chans, .out_chans = out_chans, .kernel = 3, .bias = false}, params.child("2")),
      norm2_(out_chans, kSamNormEps, params.child("3")) {}

Tensor SamNeck::forward(const Tensor& x) const {
  return traced(*this, norm2_.forward(conv2_.forward(norm1_.forward(conv1_.forward(x)))));
}

void SamNeck::visit(nn::Visitor& visitor) {
  visitor.child("0", static_cast<nn::Module&>(conv1_));
  visitor.child("1", static_cast<nn::Module&>(norm1_));
  visitor.child("2", static_cast<nn::Module&>(conv2_));
  visitor.child("3", static_cast<nn::Module&>(norm2_));
}

SamTrunk SamEncoder::trunk_outputs(const Tensor& /*images*/) const {
  throw Error("image encoder", "one whose neck reads one map", type());
}

Tensor SamEncoder::neck(const Tensor& /*output*/) const {
  throw Error("image encoder", "one whose neck reads one map", type());
}

SamSingleScaleEncoder::SamSingleScaleEncoder(int64_t dim, int64_t out_chans, const ParamSource& params)
    : SamEncoder(params.path()), neck_(dim, out_chans, params.child("neck")) {}

SamMaps SamSingleScaleEncoder::maps(const Tensor& images) const {
  const SamTrunk trunk = trunk_outputs(images);
  SamMaps maps{traced(*this, neck(trunk.output)), {}};
  if (trunk.intermediate.defined()) maps.further.push_back(trunk.intermediate);
  return maps;
}

void SamSingleScaleEncoder::visit(nn::Visitor& visitor) { visitor.child("neck", static_cast<nn::Module&>(neck_)); }

SamImageEncoder::SamImageEncoder(const SamEncoderConfig& config, const ParamSource& params)
    : SamSingleScaleEncoder(config.dim, config.out_chans, params),
      config_(config),
      patch_embed_({.img_size = {config.image_size(), config.image_size()},
                    .patch_size = {config.patch_size, config.patch_size},
                    .in_chans = config.in_chans,
                    .embed_dim = config.dim},
                   params.child("patch_embed")),
      pos_embed_(params.get("pos_embed", {1, config.grid, config.grid, config.dim}, nn::init::zeros())),
      blocks_(params.child("blocks").path()) {
  const ParamSource blocks = params.child("blocks");
  for (size_t i = 0; i < config.blocks.size(); ++i) {
    blocks_.emplace_back(config, config.blocks[i], blocks.child(static_cast<int64_t>(i)));
  }
}

SamTrunk SamImageEncoder::trunk_outputs(const Tensor& images) const {
  const Tensor patches = patch_embed_.forward(images);  // [B, h·w, C]
  Tensor x = ops::add(patches.view({images.size(0), config_.grid, config_.grid, config_.dim}), pos_embed_);
  Tensor intermediate;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    x = blocks_[i].forward(x);
    if (config_.blocks[i].window == 0 && !intermediate.defined()) intermediate = x;
  }
  return {x, intermediate};
}

std::vector<std::string> SamImageEncoder::outer_layers() const { return {"patch_embed.proj", "neck.0", "neck.2"}; }

void SamImageEncoder::visit(nn::Visitor& visitor) {
  visitor.parameter("pos_embed", pos_embed_);
  visitor.child("patch_embed", static_cast<nn::Module&>(patch_embed_));
  visitor.child("blocks", static_cast<nn::Module&>(blocks_));
  SamSingleScaleEncoder::visit(visitor);
}

}  // namespace vitrail::models
