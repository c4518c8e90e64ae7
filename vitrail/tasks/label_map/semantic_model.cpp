// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/label_map/semantic_model.h"

#include <nlohmann/json.hpp>

#include "vitrail/analysis/label_map.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/dense/outer_layers.h"
#include "vitrail/pipeline/prediction_json_internal.h"

namespace vitrail::tasks {
namespace {

Tensor window_of(const Tensor& images, const models::WindowPlace& place) {
  const Tensor padded = Tensor::zeros({1, images.size(1), place.input[0], place.input[1]});
  padded.narrow(2, (place.input[0] - place.height) / 2, place.height)
      .narrow(3, (place.input[1] - place.width) / 2, place.width)
      .copy_(images.narrow(2, place.top, place.height).narrow(3, place.left, place.width));
  return padded;
}

}  // namespace

size_t SemanticEncoding::bytes() const {
  int64_t values = logits.defined() ? logits.numel() : 0;
  for (const analysis::ScoreWindow& window : windows) values += window.scores.numel();
  return static_cast<size_t>(values) * sizeof(float);
}

SemanticModel::SemanticModel(const models::ModelFiles& files, const OpenOptions& options)
    : precision_(require_no_others(options, "a semantic segmenter").model.precision.value_or(kernels::Precision::fp32)),
      files_(models::open_semantic_segmenter(files)),
      model_(models::load_semantic_segmenter(files_)),
      transform_(infer::transform_of(model_.config().preprocessing, files.path.string())) {
  files_.checkpoint.reset();  // the weights are in the model
  session_ = std::make_unique<infer::FunctionSession>(
      model_,
      [this](const infer::NamedTensors& in) -> infer::NamedTensors {
        return {{"logits", model_.forward(in[0].tensor)}};
      },
      infer::FunctionOptions{
          .threads = options.model.threads, .precision = precision_, .excluded_layers = models::outer_layers(model_)});
}

// The logits have the axes of transformers, [B, classes, h, w]; those of the session have the classes last.
std::optional<Network> SemanticModel::network() const {
  const models::SemanticConfig& config = model_.config();
  const auto [height, width] = windows_of(config, config.resize.size[0], config.resize.size[1]).front().input;
  return Network{
      .module = model_,
      .forward = [this](const infer::NamedTensors& in) -> infer::NamedTensors {
        return {{"logits", model_.channels_first(in[0].tensor)}};
      },
      .session = *session_,
      .inputs = {{"images", Tensor::empty({1, config.backbone.in_chans, height, width}, DType::f32, Device::meta)}},
      .any_size = true,
      .pixels = &config.preprocessing,
      .inputs_of = [this](const image::ImageView& photo) -> infer::NamedTensors {
        const Tensor images = prepared(photo);
        return {{"images", window_of(images, windows_of(model_.config(), images.size(2), images.size(3)).front())}};
      },
      .key_map = files_.key_map,
      .config_json = files_.config_json,
      .preprocessor_json = files_.preprocessor_json};
}

std::string SemanticModel::config() const {
  const models::SemanticConfig& model = model_.config();
  return pipeline::json_line(
      {{"architecture", model.architecture}, {"image_size", model.resize.size}, {"classes", model.num_classes()}});
}

std::string SemanticModel::facts() const {
  const models::SemanticConfig& model = model_.config();
  return pipeline::json_line({{"architecture", model.architecture},
                              {"image_size", model.resize.size},
                              {"depth", model.backbone.depth},
                              {"heads", model.backbone.num_heads},
                              {"dim", model.backbone.embed_dim},
                              {"classes", model.num_classes()},
                              {"texts", false},
                              {"segments", false},
                              {"precision", kernels::name_of(precision_)}});
}

std::shared_ptr<const ImageEncoding> SemanticModel::encode(const image::ImageView& photo) const {
  auto encoding = std::make_shared<SemanticEncoding>();
  encoding->width = photo.width();
  encoding->height = photo.height();
  const Tensor images = prepared(photo);
  if (!model_.config().window) {
    encoding->logits = logits_of(images);
    return encoding;
  }
  encoding->resized = {images.size(2), images.size(3)};
  for (const models::WindowPlace& place : models::windows_of(model_.config(), images.size(2), images.size(3))) {
    encoding->windows.push_back(
        {logits_of(window_of(images, place)), place.top, place.left, place.height, place.width});
  }
  return encoding;
}

Tensor SemanticModel::logits_of(const Tensor& input) const {
  Tensor logits = session_->run({{"images", input}})[0].tensor.squeeze(0);
  require_finite("logits", logits);
  return logits;
}

Tensor SemanticModel::prepared(const image::ImageView& photo) const {
  image::EvalTransform transform = transform_;
  transform.processor->size = models::dense_input_size(model_.config(), photo.height(), photo.width());
  return image::apply(photo, transform).unsqueeze(0);
}

LabelMap SemanticModel::label_map(const ImageEncoding& encoding, LabelMapTask /*task*/, int64_t height, int64_t width,
                                  const LabelMapThresholds& /*thresholds*/) const {
  const auto& of_image = static_cast<const SemanticEncoding&>(encoding);
  std::vector<int32_t> classes = of_image.windows.empty()
                                     ? analysis::argmax_at_size(of_image.logits, height, width)
                                     : analysis::argmax_at_size(of_image.windows, of_image.resized, height, width);
  return semantic_map(std::move(classes), height, width);
}

Family semantic_family() {
  return {.name = "semantic",
          .has_architecture = [](const std::string& /*name*/) { return false; },
          .recognises = [](const models::ModelFiles& files) { return models::is_semantic_segmenter(files.first); },
          .load = [](const models::ModelFiles& files, const OpenOptions& options) -> std::unique_ptr<LoadedModel> {
            return std::make_unique<SemanticModel>(files, options);
          }};
}

}  // namespace vitrail::tasks
