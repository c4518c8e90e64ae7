// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/detection/detection_model_internal.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/objectives/detection/detection_recipe_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kMaxMaps = 4;
constexpr int64_t kDefaultSide = 320;
constexpr double kPrior = 0.01;  // the score of a class before training

// What a backbone with windows cannot have; empty: nothing.
std::string unsupported_by_windows(const models::VisionTransformerConfig& vit) {
  if (vit.reg_tokens > 0) return "register tokens";
  if (vit.dist_token) return "a distillation token";
  if (!vit.class_token || vit.no_embed_class) return "no class token with a position";
  if (vit.pos_embed != models::PositionEmbedding::learned) return "no learned positions";
  if (vit.use_rot_pos_emb || vit.use_rel_pos_bias || vit.use_shared_rel_pos_bias) return "rotary or relative positions";
  if (vit.pre_norm || !vit.final_norm) return "a norm in front of the blocks, or none behind them";
  if (vit.img_size[0] != vit.img_size[1] || vit.patch_size[0] != vit.patch_size[1]) return "an input that is no square";
  return {};
}

models::RfDetrConfig new_config(const Recipe& recipe, const models::ModelConfig& backbone,
                                const std::vector<std::string>& classes) {
  const DetectionRecipe& detection = detection_of(recipe);
  models::RfDetrConfig config;
  config.architecture = backbone.architecture;
  config.backbone.vit = backbone.vit;
  config.backbone.vit.dynamic_img_size = true;
  config.backbone.file_depth = backbone.vit.depth;
  config.backbone.num_windows = detection.windows;
  config.backbone.maps.clear();
  const int64_t maps = std::min(kMaxMaps, backbone.vit.depth);
  for (int64_t i = 1; i <= maps; ++i) config.backbone.maps.push_back(i * backbone.vit.depth / maps);
  config.backbone.windowed = models::windowed_blocks(backbone.vit.depth, config.backbone.maps);
  config.dim = detection.width;
  config.projector.hidden = detection.width / 2;
  config.decoder.depth = detection.layers;
  config.decoder.points = 2;
  config.decoder.mlp_hidden = 4 * detection.width;
  config.num_queries = detection.queries;
  config.groups = detection.groups;
  config.labels = classes;
  config.preprocessing = preprocessing_of(recipe.data, backbone);
  config.preprocessing.interpolation = "bilinear";
  return config;
}

void set_side(int64_t side, models::RfDetrConfig& config) {
  const int64_t multiple = config.backbone.vit.patch_size[0] * config.backbone.num_windows;
  if (side % multiple != 0)
    throw Error("detect.size", str("a multiple of ", multiple, ", patch size times windows"), str(side));
  const int64_t patches = side / config.backbone.vit.patch_size[0];
  if (config.num_queries > patches * patches)
    throw Error("detect.queries", str("at most the input's ", patches * patches, " patches"), str(config.num_queries));
  config.preprocessing.rule = models::ResizeRule::huggingface;
  config.preprocessing.resize_to = config.preprocessing.input_size = std::array{side, side};
}

// Heads read points in directions of their own, each point farther away (Deformable DETR).
void set_sampling_offsets(const Tensor& weight, const Tensor& bias, int64_t points) {
  std::fill_n(weight.data<float>(), weight.numel(), 0.0F);
  const int64_t heads = bias.numel() / (points * 2);
  for (int64_t head = 0; head < heads; ++head) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(head) / static_cast<double>(heads);
    const double x = std::cos(angle), y = std::sin(angle), largest = std::max(std::abs(x), std::abs(y));
    for (int64_t point = 0; point < points; ++point) {
      float* const at = bias.data<float>() + (head * points + point) * 2;
      at[0] = static_cast<float>(x / largest * static_cast<double>(point + 1));
      at[1] = static_cast<float>(y / largest * static_cast<double>(point + 1));
    }
  }
}

// The initial values of RF-DETR, where they are not those of each layer.
void initialise_detector(const models::RfDetr& model) {
  const auto fill = [&](const std::string& name, double value) {
    const Tensor& tensor = model.parameter(name);
    std::fill_n(tensor.data<float>(), tensor.numel(), static_cast<float>(value));
  };
  const auto set_heads = [&](const std::string& classes, const std::string& boxes) {
    fill(classes + ".bias", -std::log((1 - kPrior) / kPrior));
    fill(boxes + ".layers.2.weight", 0);
    fill(boxes + ".layers.2.bias", 0);
  };
  set_heads("class_embed", "bbox_embed");
  for (int64_t i = 0; i < model.config().groups; ++i)
    set_heads(str("transformer.", i, ".enc_out_class_embed"), str("transformer.", i, ".enc_out_bbox_embed"));
  for (int64_t i = 0; i < model.config().decoder.depth; ++i) {
    const std::string attention = str("decoder.layers.", i, ".cross_attn.");
    set_sampling_offsets(model.parameter(attention + "sampling_offsets.weight"),
                         model.parameter(attention + "sampling_offsets.bias"), model.config().decoder.points);
    fill(attention + "attention_weights.weight", 0);
    fill(attention + "attention_weights.bias", 0);
  }
}

bool is_class_head(const std::string& name) { return name.find("class_embed.") != std::string::npos; }

// Copies the rows of classes with the same name; the others keep their initial values.
void copy_rows(const Tensor& from, const Tensor& to, const std::vector<std::string>& known,
               const std::vector<std::string>& classes) {
  const int64_t size = from.numel() / from.size(0);
  for (size_t i = 0; i < classes.size(); ++i) {
    const auto found = std::ranges::find(known, classes[i]);
    if (found == known.end()) continue;
    std::copy_n(from.data<float>() + (found - known.begin()) * size, size,
                to.data<float>() + static_cast<int64_t>(i) * size);
  }
}

PreparedDetector fine_tuned_detector(const Recipe& recipe, const models::ModelFiles& files,
                                     const std::vector<std::string>& classes, std::vector<std::string> frozen) {
  refuse_adapter(recipe.model, "an RF-DETR");
  const DetectionRecipe& detection = detection_of(recipe);
  models::RfDetrFiles opened = models::open_rf_detr(files);
  if (opened.config.masks || opened.config.projector.batch_norm) {
    throw Error(recipe.model.init, "an RF-DETR for boxes to train",
                opened.config.masks ? "one for instance segmentation" : "LW-DETR");
  }
  const int64_t groups = std::min(detection.groups, models::groups_of(opened));
  const models::RfDetr source = models::load_rf_detr(models::with_groups(opened, groups));
  models::RfDetrConfig config = source.config();
  config.labels = classes;
  set_side(detection.size > 0 ? detection.size : config.side(), config);
  RandomParams random(recipe.seed);
  models::RfDetr model(config, ParamSource(random));
  initialise_detector(model);
  const std::vector<std::string>& known = source.config().labels;
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    const Tensor from = source.parameter(parameter.name).contiguous();
    if (is_class_head(parameter.name)) {
      copy_rows(from, parameter.tensor, known, classes);
    } else {
      parameter.tensor.copy_(from);
    }
  }
  const auto kept = std::ranges::count_if(
      classes, [&](const std::string& name) { return std::ranges::find(known, name) != known.end(); });
  std::vector<std::string> notes{str("classes: ", kept, " of ", classes.size(), " have the rows of the same name")};
  return {std::move(model), std::move(notes), std::move(frozen)};
}

// The patches' features: those of the last block have the norm that is in front of a class token or a mean.
ModelRecipe backbone_recipe(const Recipe& recipe) {
  ModelRecipe model = recipe.model;
  auto args = models::Json::parse(model.model_args.empty() ? "{}" : model.model_args);
  args["fc_norm"] = false;
  args["global_pool"] = "token";
  model.model_args = args.dump();
  return model;
}

}  // namespace

int64_t new_detector_side(const DetectionRecipe& detection, int64_t patch) {
  return detection.size > 0 ? detection.size : round_up(kDefaultSide, patch * detection.windows);
}

PreparedDetector prepare_detector(const Recipe& recipe, const std::vector<std::string>& classes) {
  std::vector<std::string> frozen = recipe.model.freeze;
  if (!detection_of(recipe).train_backbone) frozen.emplace_back("backbone.*");
  if (!recipe.model.init.empty()) {
    const models::ModelFiles files(recipe.model.init);
    if (models::is_rf_detr(files)) return fine_tuned_detector(recipe, files, classes, std::move(frozen));
  }
  PreparedModel backbone = prepare_model(backbone_recipe(recipe), {}, recipe.seed);
  if (const std::string parts = unsupported_by_windows(backbone.config.vit); !parts.empty())
    throw Error("model", "a plain Vision Transformer for the backbone of a detector", parts);
  models::RfDetrConfig config = new_config(recipe, backbone.config, classes);
  set_side(new_detector_side(detection_of(recipe), config.backbone.vit.patch_size[0]), config);
  RandomParams random(recipe.seed);
  models::RfDetr model(config, ParamSource(random));
  initialise_detector(model);
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    constexpr std::string_view kBackbone = "backbone.";
    if (parameter.name.starts_with(kBackbone))
      parameter.tensor.copy_(backbone.model.parameter(parameter.name.substr(kBackbone.size())));
  }
  backbone.notes.emplace_back("projector and decoder: new");
  return {std::move(model), std::move(backbone.notes), std::move(frozen)};
}

}  // namespace vitrail::train
