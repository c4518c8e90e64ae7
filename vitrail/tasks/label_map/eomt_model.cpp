// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/label_map/eomt_model.h"

#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/image/crop_internal.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/model_facts_internal.h"

namespace vitrail::tasks {
namespace {

using Resize = image::ProcessorSteps::Resize;

LabelMap label_map_of(const analysis::QuerySegments& found, int64_t height, int64_t width) {
  LabelMap map{width, height, found.ids, {}};
  for (const analysis::QuerySegment& segment : found.segments)
    map.segments.push_back({segment.id, segment.label, segment.score});
  return map;
}

}  // namespace

size_t EomtEncoding::bytes() const {
  size_t values = 0;
  for (const analysis::QueryMasks& crop : crops)
    values += static_cast<size_t>(crop.masks.numel() + crop.classes.numel());
  return values * sizeof(float);
}

EomtModel::EomtModel(const models::ModelFiles& files, const OpenOptions& options)
    : NetworkModel(files, options, "EoMT", models::open_eomt, models::load_eomt) {}

// The outputs have the names of transformers.
infer::NamedTensors EomtModel::forward(const infer::NamedTensors& inputs) const {
  const models::EomtOutput output = net().forward(inputs[0].tensor);
  return {{"class_queries_logits", output.classes}, {"masks_queries_logits", output.masks}};
}

std::optional<Network> EomtModel::network() const {
  std::optional<Network> network = NetworkModel::network();
  network->any_size = false;
  return network;
}

Shape EomtModel::nominal_input() const {
  const models::EomtConfig& config = net().config();
  return {1, config.backbone.in_chans, config.side(), config.side()};
}

Tensor EomtModel::prepared(const image::ImageView& photo) const {
  const models::EomtPlacement placement = place_for_eomt(net().config(), photo.height(), photo.width());
  return crop_of(resized(photo, placement), placement, placement.starts.front());
}

std::string EomtModel::config() const {
  const models::EomtConfig& model = net().config();
  return pipeline::json_line({{"architecture", model.architecture},
                              {"image_size", model.backbone.img_size},
                              {"queries", model.num_queries},
                              {"classes", model.num_classes}});
}

std::string EomtModel::facts() const {
  const models::EomtConfig& model = net().config();
  return facts_json({.architecture = model.architecture,
                     .image_size = model.backbone.img_size,
                     .depth = model.backbone.depth,
                     .heads = model.backbone.num_heads,
                     .dim = model.backbone.embed_dim,
                     .classes = model.num_classes,
                     .precision = precision()});
}

Tensor EomtModel::input_of(const image::Image& /*photo*/) const {
  throw Error("model", "a model with passes", family());
}

std::vector<Tensor> EomtModel::run(const Tensor& /*inputs*/, const infer::Request& /*pass*/) const {
  throw Error("model", "a model with passes", family());
}

std::shared_ptr<const ImageEncoding> EomtModel::encode(const image::ImageView& photo) const {
  auto encoding = std::make_shared<EomtEncoding>();
  encoding->width = photo.width();
  encoding->height = photo.height();
  const models::EomtPlacement& placement = encoding->placement =
      models::place_for_eomt(net().config(), photo.height(), photo.width());
  const image::Image whole = resized(photo, placement);
  for (const int64_t start : placement.starts) {
    const infer::NamedTensors out = run_session(crop_of(whole, placement, start));
    encoding->crops.push_back({out[0].tensor.squeeze(0), out[1].tensor.squeeze(0)});
  }
  return encoding;
}

image::Image EomtModel::resized(const image::ImageView& photo, const models::EomtPlacement& placement) const {
  image::EvalTransform resize = transform();
  resize.processor->resize = Resize::fixed;
  resize.processor->size = placement.resized;
  return image::apply_geometry(photo, resize);
}

// Beyond the image is black, which is normalised too.
Tensor EomtModel::crop_of(const image::Image& whole, const models::EomtPlacement& placement, int64_t start) const {
  image::EvalTransform normalize = transform();
  normalize.processor->resize = Resize::none;
  const int64_t side = net().config().side();
  const image::Window window{placement.vertical ? 0 : start, placement.vertical ? start : 0, side, side};
  return image::apply(image::crop(whole, window), normalize).unsqueeze(0);
}

std::vector<LabelMapTask> EomtModel::label_map_tasks() const {
  if (net().config().split) return {LabelMapTask::semantic};
  return {LabelMapTask::panoptic, LabelMapTask::instance, LabelMapTask::semantic};
}

std::array<int64_t, 2> EomtModel::nominal_size() const { return net().config().backbone.img_size; }

LabelMap EomtModel::label_map(const ImageEncoding& encoding, LabelMapTask task, int64_t height, int64_t width,
                              const LabelMapThresholds& thresholds) const {
  const auto& of_image = static_cast<const EomtEncoding&>(encoding);
  const models::EomtPlacement& placement = of_image.placement;
  const std::vector<analysis::QueryMasks>& crops = of_image.crops;
  const analysis::QueryPlacement place{net().config().side(), placement.resized, {height, width}};
  const auto score = static_cast<float>(thresholds.score), overlap = static_cast<float>(thresholds.overlap);
  switch (task) {
    case LabelMapTask::panoptic:
      return label_map_of(
          analysis::panoptic_segments(crops[0], place, {.threshold = score, .overlap_threshold = overlap}), height,
          width);
    case LabelMapTask::instance:
      return label_map_of(analysis::instance_segments(crops[0], place, score), height, width);
    case LabelMapTask::semantic:
      break;
  }
  return semantic_map(analysis::semantic_labels(crops, placement.starts, placement.vertical, place), height, width);
}

Family eomt_family() { return {.name = "eomt", .recognises = models::is_eomt, .load = load_as<EomtModel>}; }

}  // namespace vitrail::tasks
