// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/label_map/eomt_model.h"

#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/image/crop_internal.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/pipeline/prediction_json_internal.h"

namespace vitrail::tasks {
namespace {

using Resize = image::ProcessorSteps::Resize;

// The convolutions and the heads, which are few and see the values of the result.
std::vector<std::string> layers_outside_blocks(const models::Eomt& model) {
  constexpr std::string_view suffix = ".weight";
  std::vector<std::string> layers;
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    const std::string& name = parameter.name;
    const bool head = name.starts_with("mask_head.") || name.starts_with("class_predictor.");
    if (name.ends_with(suffix) && (head || parameter.tensor.rank() == 4))
      layers.push_back(name.substr(0, name.size() - suffix.size()));
  }
  return layers;
}

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
    : precision_(require_no_others(options, "EoMT").model.precision.value_or(kernels::Precision::fp32)),
      model_(models::load_eomt(files)),
      transform_(infer::transform_of(model_.config().preprocessing, files.path.string())) {
  session_ = std::make_unique<infer::FunctionSession>(
      model_,
      [this](const infer::NamedTensors& in) -> infer::NamedTensors {
        const models::EomtOutput output = model_.forward(in[0].tensor);
        return {{"classes", output.classes}, {"masks", output.masks}};
      },
      infer::FunctionOptions{
          .threads = options.model.threads, .precision = precision_, .excluded_layers = layers_outside_blocks(model_)});
}

std::string EomtModel::config() const {
  const models::EomtConfig& model = model_.config();
  return pipeline::json_line({{"architecture", model.architecture},
                              {"image_size", model.backbone.img_size},
                              {"queries", model.num_queries},
                              {"classes", model.num_classes}});
}

std::string EomtModel::facts() const {
  const models::EomtConfig& model = model_.config();
  return pipeline::json_line({{"architecture", model.architecture},
                              {"image_size", model.backbone.img_size},
                              {"depth", model.backbone.depth},
                              {"heads", model.backbone.num_heads},
                              {"dim", model.backbone.embed_dim},
                              {"classes", model.num_classes},
                              {"texts", false},
                              {"segments", false},
                              {"precision", kernels::name_of(precision_)}});
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
      models::place_for_eomt(model_.config(), photo.height(), photo.width());
  const int64_t side = model_.config().side();
  image::EvalTransform resize = transform_, normalize = transform_;
  resize.processor->resize = Resize::fixed;
  resize.processor->size = placement.resized;
  normalize.processor->resize = Resize::none;
  const image::Image resized = image::apply_geometry(photo, resize);
  for (const int64_t start : placement.starts) {
    // Beyond the image is black, which is normalised too.
    const image::Window window{placement.vertical ? 0 : start, placement.vertical ? start : 0, side, side};
    const Tensor input = image::apply(image::crop(resized, window), normalize).unsqueeze(0);
    const infer::NamedTensors out = session_->run({{"images", input}});
    encoding->crops.push_back({out[0].tensor.squeeze(0), out[1].tensor.squeeze(0)});
  }
  return encoding;
}

std::vector<LabelMapTask> EomtModel::label_map_tasks() const {
  if (model_.config().split) return {LabelMapTask::semantic};
  return {LabelMapTask::panoptic, LabelMapTask::instance, LabelMapTask::semantic};
}

std::array<int64_t, 2> EomtModel::nominal_size() const { return model_.config().backbone.img_size; }

LabelMap EomtModel::label_map(const ImageEncoding& encoding, LabelMapTask task, int64_t height, int64_t width) const {
  const auto& of_image = static_cast<const EomtEncoding&>(encoding);
  const models::EomtPlacement& placement = of_image.placement;
  const std::vector<analysis::QueryMasks>& crops = of_image.crops;
  const analysis::QueryPlacement place{model_.config().side(), placement.resized, {height, width}};
  switch (task) {
    case LabelMapTask::panoptic:
      return label_map_of(analysis::panoptic_segments(crops[0], place), height, width);
    case LabelMapTask::instance:
      return label_map_of(analysis::instance_segments(crops[0], place), height, width);
    case LabelMapTask::semantic:
      break;
  }
  return semantic_map(analysis::semantic_labels(crops, placement.starts, placement.vertical, place), height, width);
}

Family eomt_family() {
  return {.name = "eomt",
          .has_architecture = [](const std::string& /*name*/) { return false; },
          .recognises = models::is_eomt,
          .load = [](const models::ModelFiles& files, const OpenOptions& options) -> std::unique_ptr<LoadedModel> {
            return std::make_unique<EomtModel>(files, options);
          }};
}

}  // namespace vitrail::tasks
