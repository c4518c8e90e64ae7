// SPDX-License-Identifier: Apache-2.0
#pragma once
// The model of a run with the objective "contrastive".
#include <string>
#include <vector>

#include "vitrail/models/load.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// A dual model: "image_encoder.…" and "text.…" are the towers, logit_scale [1] and logit_bias [1] turn similarities
// into logits.
class TrainedDual : public nn::Module {
 public:
  TrainedDual(models::VisionTransformer image, models::TextTower text);
  models::VisionTransformer& image() { return image_; }
  const models::TextTransformer& text() const { return text_; }
  const Tensor& logit_scale() const { return logit_scale_; }
  const Tensor& logit_bias() const { return logit_bias_; }
  // Limits the scale to 100, as CLIP does (Radford et al. 2021, section 2.5).
  void limit_scale();
  std::string type() const override { return "DualModel"; }
  void visit(nn::Visitor& visitor) override;

 private:
  models::VisionTransformer image_;
  models::TextTransformer text_;
  Tensor logit_scale_, logit_bias_;
};

// Opens recipe.init.  Throws Error for an image model alone, for int8 weights, and for a sigmoid loss without a bias of
// the logits.
models::OpenedModel open_dual_model(const Recipe& recipe);

// The loss of a recipe: that which it names, or the model's own.
models::DualLoss dual_loss(const Recipe& recipe, const models::OpenedModel& opened);

// Parameters of TrainedDual as the tensors of the file that the model was opened from.
std::vector<nn::NamedTensor> dual_file_tensors(const models::OpenedModel& opened,
                                               const std::vector<nn::NamedTensor>& parameters);

// Weights between those that training starts from and trained ones (WiSE-FT): start + α · (trained − start).
class StartAverage {
 public:
  // Keeps a copy of the parameters unless α is 1.
  StartAverage(double alpha, const std::vector<nn::NamedTensor>& start);
  std::vector<nn::NamedTensor> of(std::vector<nn::NamedTensor> trained) const;

 private:
  double alpha_;
  std::vector<Tensor> start_;
};

// Replaces parameters by their average while it exists.
class AveragedScope {
 public:
  AveragedScope(const StartAverage& average, const std::vector<nn::NamedTensor>& parameters);
  ~AveragedScope();
  AveragedScope(const AveragedScope&) = delete;
  AveragedScope& operator=(const AveragedScope&) = delete;

 private:
  std::vector<nn::NamedTensor> parameters_;
  std::vector<Tensor> trained_;
};

}  // namespace vitrail::train
