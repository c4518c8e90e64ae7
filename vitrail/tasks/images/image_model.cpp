// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/images/image_model.h"

#include <nlohmann/json.hpp>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/models/registry.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/model_facts_internal.h"

namespace vitrail::tasks {
namespace {

using nlohmann::ordered_json;

// The scores of a classifier, and the embedding of every model.
class ImageTensors : public Request {
 public:
  explicit ImageTensors(const ImageModel& model) : model_(model) {}

  std::vector<infer::Request> passes() const override {
    if (!model_.classifies()) return {model_.images().request_of({})};
    return {{.output = infer::Output::logits_and_features}};
  }

  std::vector<Output> outputs() const override {
    const Output embedding{"embedding", {model_.embedding_dim()}};
    if (!model_.classifies()) return {embedding};
    const Shape classes{model_.images().config().vit.num_classes};
    return {{"logits", classes, true}, {"probabilities", classes, true}, embedding};
  }

  Tensor array(const Item& item, size_t output) const override {
    const std::vector<Tensor>& results = item.results[0];
    const std::string name = outputs()[output].name;
    if (name != "probabilities") return name == "logits" ? results.front() : results.back();
    const Tensor& logits = results.front();
    require_finite(item.name + ": " + name, logits);
    const std::span values(logits.data<float>(), static_cast<size_t>(logits.numel()));
    const Tensor probabilities = Tensor::empty(logits.shape());
    for (const Prediction& p : model_.images().predictions(values, logits.numel(), item.name))
      probabilities.data<float>()[p.index] = p.probability;
    return probabilities;
  }

  std::string json(const Item& item) const override {
    ordered_json object{{"path", item.name}};
    for (size_t i = 0; i < outputs().size(); ++i) {
      const Tensor values = array(item, i);
      object[outputs()[i].name] = std::vector<float>(values.data<float>(), values.data<float>() + values.numel());
    }
    return pipeline::json_line(object);
  }

 private:
  const ImageModel& model_;
};

}  // namespace

ImageModel::ImageModel(const models::OpenedModel& opened, const OpenOptions& options) : differentiable_(opened) {
  if (opened.config.text) {
    try {
      dual_ = std::make_unique<DualModel>(opened, options.model, options.tokenizer);
    } catch (const Error& error) {
      if (options.images_alone.empty()) throw;
      warn(options.images_alone + " serves images only: " + error.what());
    }
  }
  if (!dual_) images_ = std::make_unique<Model>(opened, options.model);
}

std::string ImageModel::facts() const {
  const models::ModelConfig& model = images().config();
  return facts_json({.architecture = model.architecture,
                     .image_size = model.vit.img_size,
                     .depth = model.vit.depth,
                     .heads = model.vit.num_heads,
                     .dim = model.vit.embed_dim,
                     .classes = classifies() ? model.vit.num_classes : 0,
                     .texts = dual() != nullptr,
                     .precision = precision()});
}

Shape ImageModel::input_shape() const {
  const auto& vit = images().config().vit;
  return {vit.in_chans, vit.img_size[0], vit.img_size[1]};
}

std::unique_ptr<Request> ImageModel::tensors() const { return std::make_unique<ImageTensors>(*this); }

void ImageModel::warm_up() const {
  const Shape shape = input_shape();
  run(Tensor::zeros({1, shape[0], shape[1], shape[2]}), classifies() ? infer::Request{} : images().request_of({}));
}

bool ImageModel::classifies() const {
  const auto& vit = images().config().vit;
  return vit.num_classes > 0 && !vit.projection_head;
}

int64_t ImageModel::embedding_dim() const {
  const auto& vit = images().config().vit;
  return vit.projection_head ? vit.num_classes : vit.embed_dim;
}

int64_t ImageModel::image_tokens() const {
  const auto& size = images().config().vit.img_size;
  const models::VisionTransformer& model = images().session().model();
  const auto [rows, columns] = model.grid_of(size[0], size[1]);
  return rows * columns + model.num_prefix_tokens();
}

std::vector<Tensor> ImageModel::class_gradients(const image::ImageView& image,
                                                const models::ClassGradientOptions& options) const {
  const Tensor input = images().preprocess({&image, 1});
  const models::VisionTransformer& model = differentiable_.model();
  const ComputeTeam team(images().session().threads());
  return models::class_gradients(model, input, options);
}

Family image_family() {
  return {.name = "vit",
          .has_architecture = [](const std::string& name) { return models::find_architecture(name) != nullptr; },
          .recognises = [](const models::ModelFiles&) { return true; },
          .load = [](const models::ModelFiles& files, const OpenOptions& options) -> std::unique_ptr<LoadedModel> {
            return std::make_unique<ImageModel>(models::open_model(files, options.model.load), options);
          }};
}

}  // namespace vitrail::tasks
