// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/models/hiera/classifier.h"
#include "vitrail/tasks/images/classifying_model.h"
#include "vitrail/tasks/network_model.h"

namespace vitrail::tasks {

// Hiera as a classifier and encoder.
class HieraModel : public NetworkModel<ClassifyingModel, models::HieraClassifier, models::HieraClassifierConfig> {
 public:
  // Throws Error for options other than threads and precision, and for preprocessing to a size that the model cannot
  // take.
  HieraModel(const models::ModelFiles& files, const OpenOptions& options);

  std::string family() const override { return "a Hiera"; }
  std::string config() const override;
  std::string facts() const override;
  const models::ModelConfig& classes() const override { return net().config().classes; }
  std::vector<std::string> class_names() const override { return class_names_; }
  image::ColorMode color_mode() const override;
  Shape input_shape() const override;
  std::unique_ptr<Request> tensors() const override;
  void warm_up() const override;
  Tensor input_of(const image::Image& photo) const override;
  // Logits, pooled features, or both.  Throws Error for another output, and for features of tokens or of other layers.
  std::vector<Tensor> run(const Tensor& inputs, const infer::Request& pass) const override;

  bool classifies() const { return classes().vit.num_classes > 0; }
  int64_t embedding_dim() const { return net().config().trunk.stages.back().dim; }

 private:
  infer::NamedTensors forward(const infer::NamedTensors& inputs) const override;
  Shape nominal_input() const override;
  Tensor prepared(const image::ImageView& photo) const override;

  std::vector<std::string> class_names_;
};

Family hiera_family();

}  // namespace vitrail::tasks
