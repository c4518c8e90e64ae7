// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/detect/yolos_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/model_facts_internal.h"

namespace vitrail::tasks {

YolosModel::YolosModel(const models::ModelFiles& files, const OpenOptions& options)
    : NetworkModel(files, options, "YOLOS", models::open_yolos, models::load_yolos) {}

// The outputs have the names of transformers.
infer::NamedTensors YolosModel::forward(const infer::NamedTensors& inputs) const {
  const models::YolosOutput output = net().forward(inputs[0].tensor);
  return {{"logits", output.logits}, {"pred_boxes", output.boxes}};
}

Shape YolosModel::nominal_input() const {
  const auto [height, width] = net().config().nominal_size();
  return {1, net().config().backbone.in_chans, height, width};
}

std::string YolosModel::config() const {
  const models::YolosConfig& model = net().config();
  return pipeline::json_line({{"architecture", model.architecture},
                              {"image_size", model.nominal_size()},
                              {"tokens", model.num_detection_tokens},
                              {"classes", model.num_classes()}});
}

std::string YolosModel::facts() const {
  const models::YolosConfig& model = net().config();
  return facts_json({.architecture = model.architecture,
                     .image_size = model.nominal_size(),
                     .depth = model.backbone.depth,
                     .heads = model.backbone.num_heads,
                     .dim = model.backbone.embed_dim,
                     .classes = model.num_classes(),
                     .precision = precision()});
}

std::unique_ptr<Request> YolosModel::tensors() const {
  return query_tensors(net().config().num_detection_tokens, net().config().num_classes() + 1);
}

void YolosModel::warm_up() const {
  const auto [height, width] = net().config().nominal_size();
  encode(image::make_image(width, height, 3));
}

std::shared_ptr<const ImageEncoding> YolosModel::encode(const image::ImageView& photo) const {
  return query_encoding(photo, run_session(prepared(photo)));
}

Tensor YolosModel::prepared(const image::ImageView& photo) const {
  image::EvalTransform transform = this->transform();
  transform.processor->resize = image::ProcessorSteps::Resize::fixed;
  transform.processor->size = models::yolos_input_size(net().config(), photo.height(), photo.width());
  return image::apply(photo, transform).unsqueeze(0);
}

// The last class is "no object".
Detections YolosModel::detections(const ImageEncoding& encoding, float threshold) const {
  const auto& of_image = static_cast<const QueryEncoding&>(encoding);
  const Tensor& logits = of_image.logits;
  const std::vector<std::string>& labels = net().config().labels;
  Detections found;
  for (int64_t i = 0; i < logits.size(0); ++i) {
    const std::span of_token(logits.data<float>() + i * logits.size(1), static_cast<size_t>(logits.size(1)));
    const auto best = std::ranges::max_element(of_token.first(labels.size()));
    double sum = 0;
    for (const float logit : of_token) sum += std::exp(static_cast<double>(logit - *best));
    const auto score = static_cast<float>(1 / sum);
    if (score <= threshold) continue;
    const auto index = best - of_token.begin();
    found.push_back({labels[static_cast<size_t>(index)], index, score, corners_of(of_image, i)});
  }
  sort_by_score(found);
  return found;
}

Family yolos_family() { return {.name = "yolos", .recognises = models::is_yolos, .load = load_as<YolosModel>}; }

}  // namespace vitrail::tasks
