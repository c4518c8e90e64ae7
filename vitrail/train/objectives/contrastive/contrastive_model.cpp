// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/contrastive/contrastive_model_internal.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/models/dual_tensors.h"
#include "vitrail/models/text_tower.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/objectives/contrastive/contrastive_recipe_internal.h"

namespace vitrail::train {
namespace {

constexpr const char *kImage = "image_encoder", *kText = "text", *kScale = "logit_scale", *kBias = "logit_bias";

}  // namespace

TrainedDual::TrainedDual(models::VisionTransformer image, models::TextTower text)
    : image_(std::move(image)),
      text_(std::move(text.model)),
      logit_scale_(Tensor::full({1}, text.logit_scale)),
      logit_bias_(Tensor::full({1}, text.logit_bias)) {}

void TrainedDual::limit_scale() {
  const double scale = std::min(logit_scale_.item<double>(), std::log(100.0));
  logit_scale_.copy_(Tensor::full({1}, scale));
}

void TrainedDual::visit(nn::Visitor& visitor) {
  visitor.child(kImage, static_cast<nn::Module&>(image_));
  visitor.child(kText, static_cast<nn::Module&>(text_));
  visitor.parameter(kScale, logit_scale_);
  visitor.parameter(kBias, logit_bias_);
}

models::OpenedModel open_dual_model(const Recipe& recipe) {
  models::OpenedModel opened = open_source(recipe.model, recipe.model.init);
  if (!models::has_text_tower(opened)) models::build_text_tower(opened);  // throws
  if (opened.config.int8) throw Error(recipe.model.init, "a dual model with floating-point weights", "int8 weights");
  if (dual_loss(recipe, opened) == models::DualLoss::sigmoid && !opened.checkpoint->has(kBias))
    throw Error("contrastive.loss", "\"softmax\" for a model without a bias of its logits", "\"sigmoid\"");
  return opened;
}

models::DualLoss dual_loss(const Recipe& recipe, const models::OpenedModel& opened) {
  const std::string& loss = contrastive_of(recipe).loss;
  if (loss.empty()) return opened.config.text->loss;
  return loss == "sigmoid" ? models::DualLoss::sigmoid : models::DualLoss::softmax;
}

std::vector<nn::NamedTensor> dual_file_tensors(const models::OpenedModel& opened,
                                               const std::vector<nn::NamedTensor>& parameters) {
  std::map<std::string, Tensor> by_name;
  for (const nn::NamedTensor& parameter : parameters) by_name[parameter.name] = parameter.tensor.detach();
  const auto in_tower = [&](const char* tower) {
    return [&by_name, prefix = std::string(tower) + "."](const std::string& name) {
      const auto found = by_name.find(prefix + name);
      return found == by_name.end() ? Tensor() : found->second;
    };
  };
  std::vector<nn::NamedTensor> tensors;
  for (auto& [name, tensor] : models::dual_tensors(opened, {.image = in_tower(kImage),
                                                           .text = in_tower(kText),
                                                           .logit_scale = by_name.at(kScale).item<double>(),
                                                           .logit_bias = by_name.at(kBias).item<double>()}))
    tensors.push_back({name, tensor});
  return tensors;
}

StartAverage::StartAverage(double alpha, const std::vector<nn::NamedTensor>& start) : alpha_(alpha) {
  if (alpha == 1) return;
  for (const nn::NamedTensor& parameter : start) start_.push_back(parameter.tensor.detach().clone());
}

std::vector<nn::NamedTensor> StartAverage::of(std::vector<nn::NamedTensor> trained) const {
  for (size_t i = 0; i < start_.size(); ++i) {
    const Tensor average = Tensor::empty(start_[i].shape()), from = trained[i].tensor.detach().contiguous();
    std::transform(
        start_[i].data<float>(), start_[i].data<float>() + average.numel(), from.data<float>(), average.data<float>(),
        [alpha = static_cast<float>(alpha_)](float start, float value) { return start + alpha * (value - start); });
    trained[i].tensor = average;
  }
  return trained;
}

AveragedScope::AveragedScope(const StartAverage& average, const std::vector<nn::NamedTensor>& parameters) {
  const std::vector<nn::NamedTensor> averaged = average.of(parameters);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (averaged[i].tensor.storage() == parameters[i].tensor.storage()) continue;
    parameters_.push_back(parameters[i]);
    trained_.push_back(parameters[i].tensor.detach().clone());
    parameters[i].tensor.copy_(averaged[i].tensor);
  }
}

AveragedScope::~AveragedScope() {
  const autograd::NoGrad no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].tensor.copy_(trained_[i]);
}

}  // namespace vitrail::train
