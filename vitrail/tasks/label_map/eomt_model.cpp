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
      files_(models::open_eomt(files)),
      model_(models::load_eomt(files_)),
      transform_(infer::transform_of(model_.config().preprocessing, files.path.string())) {
  files_.checkpoint.reset();  // the weights are in the model
  session_ = std::make_unique<infer::FunctionSession>(
      model_, [this](const infer::NamedTensors& in) { return forward(in); },
      infer::FunctionOptions{
          .threads = options.model.threads, .precision = precision_, .excluded_layers = layers_outside_blocks(model_)});
}

// The outputs have the names of transformers.
infer::NamedTensors EomtModel::forward(const infer::NamedTensors& inputs) const {
  const models::EomtOutput output = model_.forward(inputs[0].tensor);
  return {{"class_queries_logits", output.classes}, {"masks_queries_logits", output.masks}};
}

std::optional<Network> EomtModel::network() const {
  const models::EomtConfig& config = model_.config();
  return Network{.module = model_,
                 .forward = [this](const infer::NamedTensors& in) { return forward(in); },
                 .session = *session_,
                 .inputs = {{"images", Tensor::empty({1, config.backbone.in_chans, config.side(), config.side()},
                                                     DType::f32, Device::meta)}},
                 .pixels = &config.preprocessing,
                 .inputs_of = [this](const image::ImageView& photo) -> infer::NamedTensors {
                   const models::EomtPlacement placement =
                       place_for_eomt(model_.config(), photo.height(), photo.width());
                   return {{"images", crop_of(resized(photo, placement), placement, placement.starts.front())}};
                 },
                 .key_map = files_.key_map,
                 .config_json = files_.config_json,
                 .preprocessor_json = files_.preprocessor_json};
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
  const image::Image whole = resized(photo, placement);
  for (const int64_t start : placement.starts) {
    const infer::NamedTensors out = session_->run({{"images", crop_of(whole, placement, start)}});
    encoding->crops.push_back({out[0].tensor.squeeze(0), out[1].tensor.squeeze(0)});
  }
  return encoding;
}

image::Image EomtModel::resized(const image::ImageView& photo, const models::EomtPlacement& placement) const {
  image::EvalTransform resize = transform_;
  resize.processor->resize = Resize::fixed;
  resize.processor->size = placement.resized;
  return image::apply_geometry(photo, resize);
}

// Beyond the image is black, which is normalised too.
Tensor EomtModel::crop_of(const image::Image& whole, const models::EomtPlacement& placement, int64_t start) const {
  image::EvalTransform normalize = transform_;
  normalize.processor->resize = Resize::none;
  const int64_t side = model_.config().side();
  const image::Window window{placement.vertical ? 0 : start, placement.vertical ? start : 0, side, side};
  return image::apply(image::crop(whole, window), normalize).unsqueeze(0);
}

std::vector<LabelMapTask> EomtModel::label_map_tasks() const {
  if (model_.config().split) return {LabelMapTask::semantic};
  return {LabelMapTask::panoptic, LabelMapTask::instance, LabelMapTask::semantic};
}

std::array<int64_t, 2> EomtModel::nominal_size() const { return model_.config().backbone.img_size; }

LabelMap EomtModel::label_map(const ImageEncoding& encoding, LabelMapTask task, int64_t height, int64_t width,
                              const LabelMapThresholds& thresholds) const {
  const auto& of_image = static_cast<const EomtEncoding&>(encoding);
  const models::EomtPlacement& placement = of_image.placement;
  const std::vector<analysis::QueryMasks>& crops = of_image.crops;
  const analysis::QueryPlacement place{model_.config().side(), placement.resized, {height, width}};
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

Family eomt_family() {
  return {.name = "eomt",
          .has_architecture = [](const std::string& /*name*/) { return false; },
          .recognises = models::is_eomt,
          .load = [](const models::ModelFiles& files, const OpenOptions& options) -> std::unique_ptr<LoadedModel> {
            return std::make_unique<EomtModel>(files, options);
          }};
}

}  // namespace vitrail::tasks
