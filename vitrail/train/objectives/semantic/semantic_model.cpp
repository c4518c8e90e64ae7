// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/semantic/semantic_model_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/nn/init.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layout.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/tokens.h"
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

models::SemanticConfig config_of(const Recipe& recipe, const models::ModelConfig& backbone,
                                 const std::vector<std::string>& classes) {
  const SemanticRecipe& semantic = semantic_of(recipe);
  models::SemanticConfig config;
  config.architecture = backbone.architecture;
  config.backbone = backbone.vit;
  config.layers = semantic.layers;
  if (config.layers.empty()) config.layers = {backbone.vit.depth - 1};
  if (config.layers.back() >= backbone.vit.depth) {
    throw Error("semantic.layers", str("blocks from 0 to ", backbone.vit.depth - 1), str(config.layers.back()));
  }
  config.batch_norm = semantic.batch_norm;
  config.labels = classes;
  config.resize.size = backbone.vit.img_size;
  config.preprocessing = preprocessing_of(recipe.data, backbone);
  config.preprocessing.crop_mode = "squash";
  config.preprocessing.crop_pct = 1;
  return config;
}

}  // namespace

TrainedLinearHead::TrainedLinearHead(int64_t features, int64_t classes, bool batch_norm, const ParamSource& params)
    : Module(params.path()) {
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
Tensor TrainedLinearHead::forward(const Tensor& features) const {
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
    : config_(std::move(config)),
      backbone_(std::move(backbone)),
      head_(std::ssize(config_.layers) * config_.backbone.embed_dim, config_.num_classes(), config_.batch_norm, head) {}

Tensor TrainedSegmenter::features(const Tensor& images) const {
  const auto [rows, columns] = backbone_.grid_of(images.size(2), images.size(3));
  const int64_t patches = rows * columns;
  std::vector<Tensor> maps;
  for (const Tensor& tokens : backbone_.intermediates(images, config_.layers, config_.final_norm)) {
    maps.push_back(ops::contiguous(tokens.narrow(1, tokens.size(1) - patches, patches))
                       .view({images.size(0), rows, columns, tokens.size(2)}));
  }
  return maps.size() == 1 ? maps.front() : ops::cat(maps, 3);
}

Tensor TrainedSegmenter::forward(const Tensor& images) const { return head_.forward(features(images)); }

void TrainedSegmenter::visit(nn::Visitor& visitor) {
  visitor.child("backbone", static_cast<nn::Module&>(backbone_));
  visitor.child("head", static_cast<nn::Module&>(head_));
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
  RandomParams random(recipe.seed);
  PreparedSegmenter prepared{
      TrainedSegmenter(std::move(backbone.model), std::move(config), ParamSource(random, "head")),
      std::move(backbone.notes), recipe.model.freeze};
  if (!semantic_of(recipe).train_backbone) prepared.frozen.emplace_back("backbone.*");
  if (semantic_of(recipe).batch_norm) prepared.frozen.emplace_back("head.bn.running_*");
  return prepared;
}

}  // namespace vitrail::train
