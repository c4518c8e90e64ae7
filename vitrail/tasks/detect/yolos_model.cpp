// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/detect/yolos_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/model_facts_internal.h"

namespace vitrail::tasks {
namespace {

class YolosTensors : public Request {
 public:
  explicit YolosTensors(const models::YolosConfig& config)
      : tokens_(config.num_detection_tokens), classes_(config.num_classes() + 1) {}

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& /*progress*/) const override {
    const auto& found = static_cast<const YolosEncoding&>(*encoding);
    item.results = {{found.logits, found.boxes}};
  }
  std::vector<Output> outputs() const override { return {{"logits", {tokens_, classes_}}, {"boxes", {tokens_, 4}}}; }
  Tensor array(const Item& item, size_t output) const override { return item.results[0][output]; }
  std::string json(const Item& item) const override { return failure_json(item.name, "logits and boxes are arrays"); }

 private:
  int64_t tokens_, classes_;
};

}  // namespace

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

std::unique_ptr<Request> YolosModel::tensors() const { return std::make_unique<YolosTensors>(net().config()); }

void YolosModel::warm_up() const {
  const auto [height, width] = net().config().nominal_size();
  encode(image::make_image(width, height, 3));
}

std::shared_ptr<const ImageEncoding> YolosModel::encode(const image::ImageView& photo) const {
  auto encoding = std::make_shared<YolosEncoding>();
  encoding->width = photo.width();
  encoding->height = photo.height();
  const infer::NamedTensors out = run_session(prepared(photo));
  encoding->logits = out[0].tensor.squeeze(0);
  encoding->boxes = out[1].tensor.squeeze(0);
  require_finite("logits", encoding->logits);
  require_finite("boxes", encoding->boxes);
  return encoding;
}

Tensor YolosModel::prepared(const image::ImageView& photo) const {
  image::EvalTransform transform = this->transform();
  transform.processor->resize = image::ProcessorSteps::Resize::fixed;
  transform.processor->size = models::yolos_input_size(net().config(), photo.height(), photo.width());
  return image::apply(photo, transform).unsqueeze(0);
}

// The last class is "no object".
Detections YolosModel::detections(const ImageEncoding& encoding, float threshold) const {
  const auto& of_image = static_cast<const YolosEncoding&>(encoding);
  const Tensor &logits = of_image.logits, &boxes = of_image.boxes;
  const std::vector<std::string>& labels = net().config().labels;
  const auto width = static_cast<float>(encoding.width), height = static_cast<float>(encoding.height);
  Detections found;
  for (int64_t i = 0; i < logits.size(0); ++i) {
    const std::span of_token(logits.data<float>() + i * logits.size(1), static_cast<size_t>(logits.size(1)));
    const auto best = std::ranges::max_element(of_token.first(labels.size()));
    double sum = 0;
    for (const float logit : of_token) sum += std::exp(static_cast<double>(logit - *best));
    const auto score = static_cast<float>(1 / sum);
    if (score <= threshold) continue;
    const auto index = best - of_token.begin();
    const float* const box = boxes.data<float>() + i * 4;
    found.push_back({labels[static_cast<size_t>(index)],
                     index,
                     score,
                     {(box[0] - box[2] / 2) * width, (box[1] - box[3] / 2) * height, (box[0] + box[2] / 2) * width,
                      (box[1] + box[3] / 2) * height}});
  }
  sort_by_score(found);
  return found;
}

Family yolos_family() { return {.name = "yolos", .recognises = models::is_yolos, .load = load_as<YolosModel>}; }

}  // namespace vitrail::tasks
