// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/yolos/yolos.h"

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/configured_files_internal.h"
#include "vitrail/models/dense/sigmoid_internal.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/models/layer_configs_internal.h"
#include "vitrail/nn/positional_encoding.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layout.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

constexpr const char* kYolosKeys = R"~({
  "name": "yolos",
  "base": "huggingface_vit",
  "base_prefix": ["vit\\.", "backbone."],
  "rules": [
    {"from": "vit\\.embeddings\\.detection_tokens", "to": "backbone.det_token"},
    {"from": "vit\\.encoder\\.mid_position_embeddings", "to": "backbone.mid_pos_embed"}]})~";

}  // namespace

YolosBackbone::YolosBackbone(const YolosConfig& config, const ParamSource& params)
    : VitBackbone(params.path()),
      config_(checked(config.backbone)),
      patch_embed_(patch_embed_config(config_), params.child("patch_embed")),
      blocks_("blocks"),
      norm_(config_.embed_dim, config_.norm_eps, params.child("norm")) {
  const int64_t dim = config_.embed_dim;
  const Grid grid = own_grid(config_);
  const int64_t tokens = 1 + grid[0] * grid[1] + config.num_detection_tokens;
  const TokenInit init = token_init_of(config_);
  cls_token_ = params.get("cls_token", {1, 1, dim}, init.tokens);
  det_token_ = params.get("det_token", {1, config.num_detection_tokens, dim}, init.tokens);
  pos_embed_ = params.get("pos_embed", {1, tokens, dim}, init.positions);
  if (config.mid_positions && config_.depth > 1)
    mid_pos_embed_ = params.get("mid_pos_embed", {config_.depth - 1, 1, tokens, dim}, init.positions);
  for (int64_t i = 0; i < config_.depth; ++i)
    blocks_.emplace_back(block_config(config_, i), params.child("blocks").child(i));
}

Tensor YolosBackbone::resampled(const Tensor& positions, Grid grid) const {
  const int64_t detections = det_token_.size(1), others = positions.size(1) - detections;
  const Tensor of_others =
      nn::resample_positions(positions.narrow(1, 0, others), 1, own_grid(config_), grid, config_.pos_interp);
  return ops::cat({of_others, positions.narrow(1, others, detections)}, 1);
}

Tensor YolosBackbone::embed(const Tensor& images, Grid grid) const {
  const Tensor patches = patch_embed_.forward(images).to(images.dtype());  // the residual stream stays f32
  const auto repeated = [&](const Tensor& token) {
    return token.expand({images.size(0), token.size(1), token.size(2)});
  };
  const Tensor tokens = ops::cat({repeated(cls_token_), patches, repeated(det_token_)}, 1);
  return ops::add(tokens, resampled(pos_embed_, grid).to(tokens.dtype()));
}

Tensor YolosBackbone::forward(const Tensor& images) const {
  const Grid grid = patch_embed_.grid_of(images.size(2), images.size(3));
  Tensor x = embed(images, grid);
  for (int64_t i = 0; i < config_.depth; ++i) {
    x = blocks_[i].feed_forward(blocks_[i].attend(x, {.grid = grid}));
    if (mid_pos_embed_.defined() && i + 1 < config_.depth)
      x = ops::add(x, resampled(mid_pos_embed_.select(0, i), grid).to(x.dtype()));
  }
  const int64_t detections = det_token_.size(1);
  return ops::contiguous(norm_.forward(x).narrow(1, x.size(1) - detections, detections));
}

void YolosBackbone::visit(nn::Visitor& visitor) {
  visitor.parameter("cls_token", cls_token_);
  visitor.parameter("det_token", det_token_);
  visitor.parameter("pos_embed", pos_embed_);
  visitor.parameter("mid_pos_embed", mid_pos_embed_);
  visitor.child("patch_embed", static_cast<nn::Module&>(patch_embed_));
  visitor.child("blocks", static_cast<nn::Module&>(blocks_));
  visitor.child("norm", static_cast<nn::Module&>(norm_));
}

Yolos::Yolos(const YolosConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      backbone_(config, params.child("backbone")),
      class_labels_classifier_(config.backbone.embed_dim, config.backbone.embed_dim, config.num_classes() + 1,
                               params.child("class_labels_classifier")),
      bbox_predictor_(config.backbone.embed_dim, config.backbone.embed_dim, 4, params.child("bbox_predictor")) {}

YolosOutput Yolos::forward(const Tensor& images) const {
  const Tensor tokens = backbone_.forward(images);
  return {class_labels_classifier_.forward(tokens), sigmoid(bbox_predictor_.forward(tokens))};
}

void Yolos::visit(nn::Visitor& visitor) {
  visitor.child("backbone", static_cast<nn::Module&>(backbone_));
  visitor.child("class_labels_classifier", static_cast<nn::Module&>(class_labels_classifier_));
  visitor.child("bbox_predictor", static_cast<nn::Module&>(bbox_predictor_));
}

// In int8 files the backbone has native names.
bool is_yolos(const ModelFiles& files) {
  const weights::Checkpoint& first = files.first;
  const bool tokens = first.has("vit.embeddings.detection_tokens") || first.has("backbone.det_token");
  return tokens && first.has("bbox_predictor.layers.2.weight");
}

YolosFiles open_yolos(const ModelFiles& files) {
  auto checkpoint = files.checkpoint();
  if (!is_present(files.config))
    throw Error(files.weights.front().string(), "transformers' config.json and preprocessor_config.json beside it",
                "none");
  const PreprocessorFile preprocessor = preprocessor_file(files.config.parent_path());
  const std::string text = read_regular_text_file(files.config);
  YolosConfig config = read_yolos_config(text, files.config.string(), preprocessor.text, preprocessor.path);
  weights::KeyMap key_map = weights::KeyMap::parse(kYolosKeys, "key map");
  return {std::move(checkpoint), std::move(key_map), std::move(config), text, preprocessor.text};
}

Yolos load_yolos(const YolosFiles& files) { return load_configured<Yolos>(files); }

}  // namespace vitrail::models
