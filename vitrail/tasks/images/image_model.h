// SPDX-License-Identifier: Apache-2.0
#pragma once
// A Vision Transformer, alone or as the image tower of a dual model (CLIP, SigLIP).
#include <memory>
#include <string>

#include "vitrail/models/class_gradients.h"
#include "vitrail/pipeline/differentiable_model.h"
#include "vitrail/pipeline/dual_model.h"
#include "vitrail/tasks/images/classifying_model.h"

namespace vitrail::tasks {

constexpr int64_t kMaxTop = 1 << 20;  // the limit of the option `top`

class ImageModel : public ClassifyingModel {
 public:
  // Throws Error as vitrail::Model and vitrail::DualModel.
  ImageModel(const models::OpenedModel& opened, const OpenOptions& options);

  std::string family() const override { return "a Vision Transformer"; }
  std::string config() const override { return models::write_model_config(images().config()); }
  std::string facts() const override;
  const models::ModelConfig& classes() const override { return images().config(); }
  kernels::Precision precision() const override { return images().session().precision(); }
  image::ColorMode color_mode() const override { return images().color_mode(); }
  Shape input_shape() const override;
  std::vector<std::string> class_names() const override { return images().class_names(); }
  std::unique_ptr<Request> tensors() const override;
  void warm_up() const override;
  Tensor input_of(const image::Image& photo) const override { return image::apply(photo, images().transform()); }
  std::vector<Tensor> run(const Tensor& inputs, const infer::Request& pass) const override {
    return images().session().run(inputs, pass);
  }

  const Model& images() const { return dual_ ? dual_->images() : *images_; }
  const DualModel* dual() const { return dual_.get(); }  // null: an image model alone
  bool classifies() const;                               // whether it has a classifier
  int64_t embedding_dim() const;                         // elements of an embedding
  int64_t image_tokens() const;                          // the patches of an image and the tokens before them
  // models::class_gradients() of an image in fp32, in whatever precision the model runs.  The first call reads the
  // weights again.  Throws Error also for a model without a classifier, and for int8 weights.
  std::vector<Tensor> class_gradients(const image::ImageView& image, const models::ClassGradientOptions& options) const;

  const pipeline::DifferentiableModel& differentiable() const { return differentiable_; }

 private:
  pipeline::DifferentiableModel differentiable_;
  std::unique_ptr<DualModel> dual_;
  std::unique_ptr<Model> images_;
};

Family image_family();

// The row of a task for these models, whose requests a class reads from their options.
template <class ImageRequest>
Task image_task(const char* name, bool can_render = false) {
  return {.name = name,
          .model = "a Vision Transformer",
          .can_render = can_render,
          .fits = is_model<ImageModel>,
          .request = [](const LoadedModel& model, RequestOptions& options,
                        const Setting& setting) -> std::unique_ptr<Request> {
            return std::make_unique<ImageRequest>(as_model<ImageModel>(model), options, setting);
          }};
}

}  // namespace vitrail::tasks
