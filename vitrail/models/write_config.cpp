// SPDX-License-Identifier: Apache-2.0
// Writes config.json and preprocessor_config.json for the hub layout.
#include <algorithm>

#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/model_args_internal.h"
#include "vitrail/models/timm_form_internal.h"
#include "vitrail/models/written_model.h"

namespace vitrail::models {
namespace {

// timm applies mean and std to values in [0, 1], whatever rescale_factor the processor's file has.  It has no crop_pct
// of a processor, without which parse_model_config() reads the processor's file.
Json pretrained_cfg(Preprocessing from, int64_t channels) {
  use_unit_range(from);
  Json json = Json::object();
  if (from.input_size) json["input_size"] = {channels, (*from.input_size)[0], (*from.input_size)[1]};
  if (from.interpolation) json["interpolation"] = *from.interpolation;
  const bool crops = from.rule == ResizeRule::timm;
  if (crops && from.crop_pct) json["crop_pct"] = *from.crop_pct;
  if (crops) json["crop_mode"] = from.crop_mode;
  if (from.mean) json["mean"] = *from.mean;
  if (from.std) json["std"] = *from.std;
  return json;
}

// transformers' names.
const char* problem_type_name(ProblemType type) {
  if (type == ProblemType::regression) return "regression";
  return type == ProblemType::multi_label ? "multi_label_classification" : "single_label_classification";
}

Json size_json(const std::array<int64_t, 2>& size) { return {{"height", size[0]}, {"width", size[1]}}; }

std::optional<TimmForm> timm_form_of(const ModelConfig& model) {
  return timm_form(model.vit, model.architecture.substr(0, model.architecture.find('.')));
}

std::string write_config(const ModelConfig& model, const std::optional<TimmForm>& timm) {
  const VisionTransformerConfig& config = model.vit;
  Json args = timm ? timm->model_args : write_model_args(config);
  Json json{{"architecture", timm ? timm->architecture->name : "vit"},
            {"num_classes", config.num_classes},
            {"num_features", config.embed_dim}};
  // The hub shows this field; timm reads model_args only.
  if (args.contains("global_pool")) json["global_pool"] = args["global_pool"];
  args.erase("num_classes");
  if (!args.empty()) json["model_args"] = args;
  if (timm && !timm->vitrail_args.empty()) json["vitrail_args"] = timm->vitrail_args;
  if (model.problem_type) json["problem_type"] = problem_type_name(*model.problem_type);
  if (model.int8) json["int8"] = {{"excluded", model.int8->excluded}};
  json["pretrained_cfg"] = pretrained_cfg(model.preprocessing, config.in_chans);
  if (!model.tag.empty()) json["pretrained_cfg"]["tag"] = model.tag;
  // timm refuses pretrained_cfg with a field that it does not know.
  if (model.preprocessing.fill_color) json["fill_color"] = *model.preprocessing.fill_color;
  if (!model.labels.empty()) json["label_names"] = model.labels;
  if (!model.descriptions.empty()) {
    Json texts = Json::object();
    for (size_t i = 0; i < model.labels.size(); ++i) texts[model.labels[i]] = model.descriptions[i];
    json["label_descriptions"] = texts;
  }
  return json.dump(2) + "\n";
}

}  // namespace

std::string write_model_config(const ModelConfig& config) {
  const std::optional<TimmForm> timm = timm_form_of(config);
  return write_config(config, timm && timm->has_native_tensors() ? timm : std::nullopt);
}

WrittenModel written_model(const ModelConfig& config, const NamedTensors& tensors) {
  const std::optional<TimmForm> timm = timm_form_of(config);
  if (!timm) return {write_config(config, timm), tensors};
  return {write_config(config, timm), timm_tensors(*timm, tensors), timm->architecture->name};
}

std::string write_preprocessor_config(const Preprocessing& from) {
  if (from.rule != ResizeRule::huggingface) return "";
  static const std::vector<std::string> kPillow{"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"};
  Json json{{"do_resize", from.resize_to || from.resize_shortest}, {"do_center_crop", from.center_crop.has_value()}};
  if (from.resize_floats) json["image_processor_type"] = "DINOv3ViTImageProcessor";
  if (from.resize_to) json["size"] = size_json(*from.resize_to);
  if (from.resize_shortest) json["size"] = {{"shortest_edge", *from.resize_shortest}};
  if (from.resize_longest) json["size"]["longest_edge"] = *from.resize_longest;
  if (from.center_crop) json["crop_size"] = size_json(*from.center_crop);
  if (from.interpolation) {
    json["resample"] = std::find(kPillow.begin(), kPillow.end(), *from.interpolation) - kPillow.begin();
  }
  json["do_rescale"] = true;
  json["rescale_factor"] = from.rescale_factor;
  json["do_normalize"] = true;
  if (from.mean) json["image_mean"] = *from.mean;
  if (from.std) json["image_std"] = *from.std;
  return json.dump(2) + "\n";
}

}  // namespace vitrail::models
