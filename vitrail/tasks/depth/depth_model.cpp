// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/depth/depth_model.h"

#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/image/resize_plane.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/dense/outer_layers.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/model_facts_internal.h"

namespace vitrail::tasks {
namespace {

// The map alone, at the nominal size of the input, so that those of several images have one shape.
class DepthTensor : public Request {
 public:
  explicit DepthTensor(const DepthModel& model) : model_(model) {}

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& /*progress*/) const override {
    const auto [height, width] = model_.depth_config().resize.size;
    item.results = {{model_.depth(*encoding, height, width)}};
  }
  std::vector<Output> outputs() const override {
    const auto [height, width] = model_.depth_config().resize.size;
    return {{"depth", {height, width}}};
  }
  Tensor array(const Item& item, size_t /*output*/) const override { return item.results[0][0]; }
  std::string json(const Item& item) const override { return failure_json(item.name, "a depth map is an array"); }

 private:
  const DepthModel& model_;
};

}  // namespace

DepthModel::DepthModel(const models::ModelFiles& files, const OpenOptions& options)
    : precision_(require_no_others(options, "a depth estimator").model.precision.value_or(kernels::Precision::fp32)),
      files_(models::open_depth_estimator(files)),
      model_(models::load_depth_estimator(files_)),
      transform_(infer::transform_of(model_.config().preprocessing, files.path.string())) {
  files_.checkpoint.reset();  // the weights are in the model
  session_ = std::make_unique<infer::FunctionSession>(
      model_, [this](const infer::NamedTensors& in) { return forward(in); },
      infer::FunctionOptions{
          .threads = options.model.threads, .precision = precision_, .excluded_layers = models::outer_layers(model_)});
}

infer::NamedTensors DepthModel::forward(const infer::NamedTensors& inputs) const {
  return {{"depth", model_.forward(inputs[0].tensor)}};
}

std::optional<Network> DepthModel::network() const {
  const models::DepthConfig& config = model_.config();
  const auto [height, width] = config.resize.size;
  return Network{
      .module = model_,
      .forward = [this](const infer::NamedTensors& in) { return forward(in); },
      .session = *session_,
      .inputs = {{"images", Tensor::empty({1, config.backbone.in_chans, height, width}, DType::f32, Device::meta)}},
      .any_size = true,
      .pixels = &config.preprocessing,
      .inputs_of = [this](const image::ImageView& photo) -> infer::NamedTensors {
        return {{"images", prepared(photo)}};
      },
      .key_map = files_.key_map,
      .config_json = files_.config_json,
      .preprocessor_json = files_.preprocessor_json};
}

std::string DepthModel::config() const {
  const models::DepthConfig& model = model_.config();
  return pipeline::json_line(
      {{"architecture", model.architecture}, {"image_size", model.resize.size}, {"metric", model.metric}});
}

std::string DepthModel::facts() const {
  const models::VisionTransformerConfig& vit = model_.config().backbone;
  return facts_json({.architecture = model_.config().architecture,
                     .image_size = model_.config().resize.size,
                     .depth = vit.depth,
                     .heads = vit.num_heads,
                     .dim = vit.embed_dim,
                     .precision = precision_});
}

std::unique_ptr<Request> DepthModel::tensors() const { return std::make_unique<DepthTensor>(*this); }

void DepthModel::warm_up() const {
  const auto [height, width] = model_.config().resize.size;
  encode(image::make_image(width, height, 3));
}

std::shared_ptr<const ImageEncoding> DepthModel::encode(const image::ImageView& photo) const {
  auto encoding = std::make_shared<DepthEncoding>();
  encoding->width = photo.width();
  encoding->height = photo.height();
  encoding->map = session_->run({{"images", prepared(photo)}})[0].tensor.squeeze(0);
  return encoding;
}

Tensor DepthModel::prepared(const image::ImageView& photo) const {
  image::EvalTransform transform = transform_;
  transform.processor->size = models::dense_input_size(model_.config(), photo.height(), photo.width());
  return image::apply(photo, transform).unsqueeze(0);
}

Tensor DepthModel::depth(const ImageEncoding& encoding, int64_t height, int64_t width) const {
  return image::resize_plane(static_cast<const DepthEncoding&>(encoding).map, height, width);
}

Family depth_family() {
  return {.name = "depth",
          .has_architecture = [](const std::string& /*name*/) { return false; },
          .recognises = models::is_depth_estimator,
          .load = [](const models::ModelFiles& files, const OpenOptions& options) -> std::unique_ptr<LoadedModel> {
            return std::make_unique<DepthModel>(files, options);
          }};
}

bool is_depth_model(const LoadedModel& model) { return dynamic_cast<const DepthModel*>(&model) != nullptr; }

const DepthModel& depth_model(const LoadedModel& model) { return dynamic_cast<const DepthModel&>(model); }

}  // namespace vitrail::tasks
