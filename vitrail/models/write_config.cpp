// SPDX-License-Identifier: Apache-2.0
// Writes config.json and preprocessor_config.json for the hub layout.
#include <algorithm>
#include <set>

#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/models/model_args_internal.h"
#include "vitrail/models/registry.h"

namespace vitrail::models {
namespace {

// Fields that are arguments of timm's VisionTransformer with the same name and meaning.
const std::set<std::string>& timm_fields() {
  static const std::set<std::string> names{"img_size",        "patch_size",       "in_chans",
                                           "num_classes",     "global_pool",      "embed_dim",
                                           "depth",           "num_heads",        "mlp_ratio",
                                           "qkv_bias",        "qk_norm",          "pre_norm",
                                           "final_norm",      "fc_norm",          "init_values",
                                           "class_token",     "reg_tokens",       "no_embed_class",
                                           "act_layer",       "drop_rate",        "pos_drop_rate",
                                           "patch_drop_rate", "attn_drop_rate",   "proj_drop_rate",
                                           "drop_path_rate",  "dynamic_img_size", "pool_include_prefix",
                                           "proj_bias",       "norm_layer"};
  return names;
}

// Fields that do not change the name or shape of any parameter: timm can open the file without them, with slightly
// different outputs.
const std::set<std::string>& harmless_fields() {
  static const std::set<std::string> names{"norm_eps", "pos_interp", "rel_pos_interp", "weight_init"};
  return names;
}

// Replaces mlp_hidden, or DINOv2's ratio, by an equivalent mlp_ratio of timm, if there is one.
VisionTransformerConfig normalized(VisionTransformerConfig config) {
  const bool packed = config.mlp_layer != MlpLayer::mlp;
  if (!config.mlp_hidden && config.mlp_layer != MlpLayer::swiglu) return config;
  const int64_t hidden = mlp_hidden_of(config);
  VisionTransformerConfig ratio = config;
  if (packed) ratio.mlp_layer = MlpLayer::swiglu_packed;
  ratio.mlp_hidden.reset();
  ratio.mlp_ratio = static_cast<double>(packed ? 2 * hidden : hidden) / static_cast<double>(config.embed_dim);
  return mlp_hidden_of(ratio) == hidden ? ratio : config;
}

// The fields of a normalized configuration that differ from those of a row.
Json differences(VisionTransformerConfig config, const VisionTransformerConfig& row) {
  const bool same_width = config.mlp_layer == row.mlp_layer && config.embed_dim == row.embed_dim &&
                          mlp_hidden_of(config) == mlp_hidden_of(row);
  if (same_width) {  // timm rounds some ratios
    config.mlp_ratio = row.mlp_ratio;
    config.mlp_hidden = row.mlp_hidden;
  }
  return write_model_args(config, row);
}

// timm's Eva has other names for some of its parameters than its VisionTransformer, which the native names are.
bool is_eva(const VisionTransformerConfig& config) {
  return config.attn_type == AttentionType::eva || config.use_rot_pos_emb;
}

// The registered architecture that differs from this model in the fewest arguments of timm; null if there is none.
const Architecture* timm_architecture(const VisionTransformerConfig& config, const std::string& own_name) {
  if (is_eva(config)) return nullptr;
  const Architecture* best = nullptr;
  size_t min_cost = SIZE_MAX;
  for (const Architecture& row : architectures()) {
    if (!row.in_timm) continue;
    const Json changes = differences(config, row.config);
    bool expressible = true;
    for (const auto& item : changes.items()) {
      expressible = expressible && (timm_fields().contains(item.key()) || harmless_fields().contains(item.key()));
    }
    if (!expressible) continue;
    const size_t cost = row.name == own_name ? 0 : 1 + changes.size();
    if (cost < min_cost) {
      min_cost = cost;
      best = &row;
    }
  }
  return best;
}

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

}  // namespace

std::string write_model_config(const ModelConfig& model) {
  const VisionTransformerConfig config = normalized(model.vit);
  const std::string own_name = model.architecture.substr(0, model.architecture.find('.'));
  const Architecture* timm = timm_architecture(config, own_name);
  Json args = timm ? differences(config, timm->config) : write_model_args(model.vit);
  Json json{{"architecture", timm ? timm->name : "vit"},
            {"num_classes", config.num_classes},
            {"num_features", config.embed_dim}};
  // The hub shows this field; timm reads model_args only.
  if (args.contains("global_pool")) json["global_pool"] = args["global_pool"];
  args.erase("num_classes");
  Json ours = Json::object();
  for (const std::string& name : harmless_fields()) {
    if (timm && args.contains(name)) ours[name] = args[name];
    if (timm) args.erase(name);
  }
  if (!args.empty()) json["model_args"] = args;
  if (!ours.empty()) json["vitrail_args"] = ours;
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
