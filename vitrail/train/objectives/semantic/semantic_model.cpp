// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/semantic/semantic_model_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/models/semantic/patch_maps_internal.h"
#include "vitrail/nn/init.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/resize.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/objectives/semantic/semantic_recipe_internal.h"

namespace vitrail::train {
namespace {

constexpr double kBatchNormEps = 1e-5;  // torch.nn.BatchNorm2d's

// A class token or a mean is not for patches: their features have the norm that is in front of it.
ModelRecipe without_pooling(const Recipe& recipe) {
  ModelRecipe model = recipe.model;
  const models::VisionTransformerConfig vit = architecture_of(model);
  if (vit.fc_norm.value_or(vit.global_pool == models::GlobalPool::avg)) {
    auto args = models::Json::parse(model.model_args.empty() ? "{}" : model.model_args);
    args["fc_norm"] = false;
    model.model_args = args.dump();
  }
  return model;
}

// Blocks evenly spaced up to the last.
std::vector<int64_t> dpt_layers(int64_t depth) {
  std::vector<int64_t> layers;
  for (int64_t i = 1; i <= kDptMaps; ++i) layers.push_back(i * depth / kDptMaps - 1);
  if (layers.front() < 0)
    throw Error("semantic.head", str("linear for a model of fewer than ", kDptMaps, " blocks"), "dpt");
  return layers;
}

// The sizes of Depth Anything's heads on ViT-S and ViT-B, relative to the width of the backbone.
models::DptNeckConfig dpt_neck(int64_t dim) {
  const auto part = [dim](int64_t of) { return std::max<int64_t>(1, dim / of); };
  return {.dim = dim, .hidden_dims = {part(8), part(4), part(2), dim}, .fusion_dim = part(6)};
}

models::SemanticConfig config_of(const Recipe& recipe, const models::ModelConfig& backbone,
                                 const std::vector<std::string>& classes) {
  const SemanticRecipe& semantic = semantic_of(recipe);
  models::SemanticConfig config;
  config.architecture = backbone.architecture;
  config.backbone = backbone.vit;
  config.head = semantic.head;
  config.layers = semantic.layers;
  const bool linear = semantic.head == models::SemanticHead::linear;
  if (!linear) config.neck = dpt_neck(backbone.vit.embed_dim);
  if (config.layers.empty())
    config.layers = linear ? std::vector{backbone.vit.depth - 1} : dpt_layers(backbone.vit.depth);
  if (config.layers.back() >= backbone.vit.depth) {
    throw Error("semantic.layers", str("blocks from 0 to ", backbone.vit.depth - 1), str(config.layers.back()));
  }
  config.batch_norm = linear && semantic.batch_norm;
  config.labels = classes;
  config.resize.size = backbone.vit.img_size;
  config.preprocessing = preprocessing_of(recipe.data, backbone);
  config.preprocessing.crop_mode = "squash";
  config.preprocessing.crop_pct = 1;
  return config;
}

std::unique_ptr<models::SemanticHeadModule> trained_head(const models::SemanticConfig& config,
                                                         const ParamSource& params) {
  if (config.head != models::SemanticHead::linear) return models::make_semantic_head(config, params);
  return std::make_unique<TrainedLinearHead>(std::ssize(config.layers) * config.backbone.embed_dim,
                                             config.num_classes(), config.batch_norm, params);
}

}  // namespace

TrainedLinearHead::TrainedLinearHead(int64_t features, int64_t classes, bool batch_norm, const ParamSource& params)
    : SemanticHeadModule(params.path()) {
  if (batch_norm) {
    const ParamSource norm = params.child("bn");
    gamma_ = norm.get("weight", {features}, nn::init::ones());
    beta_ = norm.get("bias", {features}, nn::init::zeros());
    mean_ = norm.get("running_mean", {features}, nn::init::zeros());
    variance_ = norm.get("running_var", {features}, nn::init::ones());
  }
  const ParamSource linear = params.child("conv_seg");
  weight_ = linear.get("weight", {classes, features, 1, 1}, nn::init::normal(0.01));  // that of MMSegmentation's heads
  bias_ = linear.get("bias", {classes}, nn::init::zeros());
}

// W (γ (x − mean) / √(var + ε) + β) + b = (W s) x + (W (β − mean s) + b) with s = γ / √(var + ε).
Tensor TrainedLinearHead::forward(const std::vector<Tensor>& tokens, int64_t rows, int64_t columns) const {
  const Tensor features = models::patch_map(tokens, rows, columns);
  const Tensor matrix = weight_.view({weight_.size(0), weight_.size(1)});
  if (!gamma_.defined()) return ops::linear(features, matrix, bias_);
  const Tensor inverse = variance_.detach().clone(), minus_mean = mean_.detach().clone();
  for (int64_t i = 0; i < inverse.numel(); ++i) {
    float& value = inverse.data<float>()[i];
    value = static_cast<float>(1 / std::sqrt(static_cast<double>(value) + kBatchNormEps));
    minus_mean.data<float>()[i] *= -1;
  }
  const Tensor scale = ops::mul(gamma_, inverse), shift = ops::add(beta_, ops::mul(scale, minus_mean));
  const Tensor moved = ops::add(ops::linear(shift.view({1, shift.numel()}), matrix, {}).view({bias_.numel()}), bias_);
  return ops::linear(features, ops::mul(matrix, scale), moved);
}

void TrainedLinearHead::normalise(const std::vector<double>& mean, const std::vector<double>& variance) {
  const auto to_float = [](double value) { return static_cast<float>(value); };
  std::ranges::transform(mean, mean_.data<float>(), to_float);
  std::ranges::transform(variance, variance_.data<float>(), to_float);
}

void TrainedLinearHead::visit(nn::Visitor& visitor) {
  visitor.parameter("bn.weight", gamma_);
  visitor.parameter("bn.bias", beta_);
  visitor.parameter("bn.running_mean", mean_);
  visitor.parameter("bn.running_var", variance_);
  visitor.parameter("conv_seg.weight", weight_);
  visitor.parameter("conv_seg.bias", bias_);
}

TrainedSegmenter::TrainedSegmenter(models::VisionTransformer backbone, models::SemanticConfig config,
                                   const ParamSource& head)
    : config_(std::move(config)), backbone_(std::move(backbone)), head_(trained_head(config_, head)) {}

Tensor TrainedSegmenter::features(const Tensor& images) const {
  const auto [rows, columns] = backbone_.grid_of(images.size(2), images.size(3));
  return models::patch_map(backbone_.intermediates(images, config_.layers, config_.final_norm), rows, columns);
}

Tensor TrainedSegmenter::forward(const Tensor& images) const {
  const auto [rows, columns] = backbone_.grid_of(images.size(2), images.size(3));
  return head_->forward(backbone_.intermediates(images, config_.layers, config_.final_norm), rows, columns);
}

void TrainedSegmenter::visit(nn::Visitor& visitor) {
  visitor.child("backbone", static_cast<nn::Module&>(backbone_));
  visitor.child("head", static_cast<nn::Module&>(*head_));
}

Tensor map_loss(const Tensor& logits, const Tensor& labels, const MapLossOptions& options) {
  const Tensor scores = ops::resize_map(logits.to(DType::f32), options.size[0], options.size[1]);
  return ops::cross_entropy(scores.view({labels.numel(), scores.size(3)}), labels, options.label_smoothing,
                            options.class_weights, options.ignored);
}

PreparedSegmenter prepare_segmenter(const Recipe& recipe, const std::vector<std::string>& classes) {
  PreparedModel backbone = prepare_model(without_pooling(recipe), {}, recipe.seed);
  backbone.model.checkpoint_blocks(recipe.model.activation_checkpointing);
  backbone.model.drop_patches_in_training(0);  // each patch has labels
  models::SemanticConfig config = config_of(recipe, backbone.config, classes);
  const bool batch_norm = config.batch_norm;
  RandomParams random(recipe.seed);
  PreparedSegmenter prepared{
      TrainedSegmenter(std::move(backbone.model), std::move(config), ParamSource(random, "head")),
      std::move(backbone.notes), recipe.model.freeze};
  if (!semantic_of(recipe).train_backbone) prepared.frozen.emplace_back("backbone.*");
  if (batch_norm) prepared.frozen.emplace_back("head.bn.running_*");
  return prepared;
}

}  // namespace vitrail::train
