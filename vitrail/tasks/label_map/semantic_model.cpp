// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/label_map/semantic_model.h"

#include <nlohmann/json.hpp>

#include "vitrail/analysis/label_map.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/model_facts_internal.h"

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
    : NetworkModel(files, options, "a semantic segmenter", models::open_semantic_segmenter,
                   models::load_semantic_segmenter) {}

infer::NamedTensors SemanticModel::forward(const infer::NamedTensors& inputs) const {
  return {{"logits", net().forward(inputs[0].tensor)}};
}

// The logits have the axes of transformers, [B, classes, h, w]; those of the session have the classes last.
std::optional<Network> SemanticModel::network() const {
  std::optional<Network> network = NetworkModel::network();
  network->forward = [this](const infer::NamedTensors& in) -> infer::NamedTensors {
    return {{"logits", net().channels_first(in[0].tensor)}};
  };
  return network;
}

Shape SemanticModel::nominal_input() const {
  const models::SemanticConfig& config = net().config();
  const auto [height, width] = windows_of(config, config.resize.size[0], config.resize.size[1]).front().input;
  return {1, config.backbone.in_chans, height, width};
}

std::string SemanticModel::config() const {
  const models::SemanticConfig& model = net().config();
  return pipeline::json_line(
      {{"architecture", model.architecture}, {"image_size", model.resize.size}, {"classes", model.num_classes()}});
}

std::string SemanticModel::facts() const {
  const models::SemanticConfig& model = net().config();
  return facts_json({.architecture = model.architecture,
                     .image_size = model.resize.size,
                     .depth = model.backbone.depth,
                     .heads = model.backbone.num_heads,
                     .dim = model.backbone.embed_dim,
                     .classes = model.num_classes(),
                     .precision = precision()});
}

std::shared_ptr<const ImageEncoding> SemanticModel::encode(const image::ImageView& photo) const {
  auto encoding = std::make_shared<SemanticEncoding>();
  encoding->width = photo.width();
  encoding->height = photo.height();
  const Tensor images = resized(photo);
  if (!net().config().window) {
    encoding->logits = logits_of(images);
    return encoding;
  }
  encoding->resized = {images.size(2), images.size(3)};
  for (const models::WindowPlace& place : models::windows_of(net().config(), images.size(2), images.size(3))) {
    encoding->windows.push_back(
        {logits_of(window_of(images, place)), place.top, place.left, place.height, place.width});
  }
  return encoding;
}

Tensor SemanticModel::logits_of(const Tensor& input) const {
  Tensor logits = run_session(input)[0].tensor.squeeze(0);
  require_finite("logits", logits);
  return logits;
}

Tensor SemanticModel::resized(const image::ImageView& photo) const {
  image::EvalTransform transform = this->transform();
  transform.processor->size = models::dense_input_size(net().config(), photo.height(), photo.width());
  return image::apply(photo, transform).unsqueeze(0);
}

Tensor SemanticModel::prepared(const image::ImageView& photo) const {
  const Tensor images = resized(photo);
  return window_of(images, windows_of(net().config(), images.size(2), images.size(3)).front());
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
          .recognises = [](const models::ModelFiles& files) { return models::is_semantic_segmenter(files.first); },
          .load = load_as<SemanticModel>};
}

}  // namespace vitrail::tasks
