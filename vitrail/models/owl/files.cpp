// SPDX-License-Identifier: Apache-2.0
// transformers' folders of OWL-ViT and OWLv2.  Absent fields have the defaults of its classes.
#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/layer_configs_internal.h"
#include "vitrail/models/owl/owl.h"
#include "vitrail/weights/checkpoint_params_internal.h"

namespace vitrail::models {
namespace {

constexpr const char* kOwlTower = R"~("base": "huggingface_clip", "base_prefix": ["owl(?:v2|vit)\\.", "vision."],
  "rules": [)~";
constexpr const char* kNoOwlTower = R"~("rules": [{"from": "owl(?:v2|vit)\\..*", "drop": true},)~";

weights::KeyMap owl_key_map(const std::string& tower) {
  const std::string json = R"~({"name": "huggingface_owl", )~" + tower + R"~(
  {"from": "((?:class_head|box_head|objectness_head|layer_norm)\\..*)", "to": "heads.$1"}]})~";
  return weights::KeyMap::parse(json, "key map");
}

void set_absent(const Json& defaults, Json& object) {
  for (const auto& [key, value] : defaults.items()) {
    if (!object.contains(key) || object[key].is_null()) object[key] = value;
  }
}

// The configuration as one of CLIP, which has the same towers and other defaults.
Json clip_config_of(Json json, const std::string& path, bool v2) {
  json["model_type"] = "clip";
  for (const char* key : {"vision_config_dict", "text_config_dict", "architectures"}) json.erase(key);
  set_absent({{"vision_config", Json::object()}, {"text_config", Json::object()}}, json);
  for (const char* tower : {"vision_config", "text_config"}) JsonFields(json[tower], path + ": " + tower);
  set_absent({{"image_size", 768}, {"patch_size", v2 ? 16 : 32}}, json["vision_config"]);
  set_absent({{"max_position_embeddings", 16}}, json["text_config"]);
  return json;
}

// The steps of OwlViTImageProcessor or Owlv2ImageProcessor as those of CLIP's.
Json clip_processor_of(const PreprocessorFile& preprocessor, bool v2) {
  Json json = preprocessor.text.empty() ? Json::object() : parse_json(preprocessor.text, preprocessor.path);
  const JsonFields file(json, preprocessor.path);
  const std::string wanted = v2 ? "Owlv2" : "OwlViT";
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) {
    if (const auto type = file.text(key); type && !type->starts_with(wanted))
      throw Error(file.path(key), wanted + "ImageProcessor", "\"" + type->substr(0, 80) + "\"");
    json.erase(key);
  }
  require_defaults(file, {{"do_resize", true}, {"do_center_crop", false}});
  if (v2) require_defaults(file, {{"do_pad", true}, {"do_rescale", true}});
  const int64_t side = v2 ? 960 : 768;
  set_absent({{"size", {{"height", side}, {"width", side}}}, {"do_center_crop", false}, {"resample", v2 ? 2 : 3}},
             json);
  if (!json["size"].is_object()) {
    const std::array<int64_t, 2> size = *file.size("size");
    json["size"] = {{"height", size[0]}, {"width", size[1]}};
  }
  return json;
}

void check_owl_towers(const ModelConfig& clip, const std::string& path, const std::string& preprocessor_path) {
  const auto& size = clip.vit.img_size;
  if (size[0] != size[1]) throw Error(path + ": vision_config: image_size", "a square", str(size[0], "×", size[1]));
  if (const auto& input = clip.preprocessing.input_size; input != size)
    throw Error(preprocessor_path + ": size", str("the model's image_size ", size[0], "×", size[1]),
                str((*input)[0], "×", (*input)[1]));
  // Embeddings of texts and of patches are compared.
  if (clip.text->output_dim != clip.text->embed_dim)
    throw Error(path + ": projection_dim", str("the text tower's hidden_size ", clip.text->embed_dim),
                str(clip.text->output_dim));
}

}  // namespace

bool is_owl(const ModelFiles& files) {
  return files.first.has("class_head.logit_shift.weight") && files.first.has("box_head.dense2.weight");
}

OwlFiles open_owl(const ModelFiles& files) {
  if (!is_present(files.config))
    throw Error(files.weights.front().string(), "a config.json of transformers beside it", "none");
  const std::string path = files.config.string();
  const std::string text = read_regular_text_file(files.config);
  const Json json = parse_json(text, path);
  const std::string type = JsonFields(json, path).text("model_type").value_or("");
  if (type != "owlv2" && type != "owlvit")
    throw Error(path + ": model_type", "owlv2 or owlvit", "\"" + type.substr(0, 80) + "\"");
  const bool v2 = type == "owlv2";
  const PreprocessorFile preprocessor = preprocessor_file(files.config.parent_path());
  ModelConfig clip = read_huggingface_config(clip_config_of(json, path, v2), clip_processor_of(preprocessor, v2), path,
                                             preprocessor.path);
  check_owl_towers(clip, path, preprocessor.path);
  clip.text->pool = TextPool::largest_id;  // whatever eos_token_id says
  OwlConfig config{.architecture = type,
                   .vision_dim = clip.vit.embed_dim,
                   .text_dim = clip.text->output_dim,
                   .grid = own_grid(clip.vit),
                   .norm_eps = clip.vit.norm_eps,
                   .objectness = v2,
                   .pads = v2};
  const auto towers = files.checkpoint();
  towers->strip_model_prefix();  // "owlv2."
  return {{files.checkpoint(), owl_key_map(kOwlTower), std::move(config), text, preprocessor.text},
          {std::move(clip), towers, weights::KeyMap::builtin("huggingface_clip"), files.weights.front().parent_path()}};
}

OwlHeads build_owl_heads(const OwlFiles& files) {
  weights::CheckpointParams params(files.checkpoint, owl_key_map(kNoOwlTower));
  OwlHeads heads(files.config, ParamSource(params).child("heads"));
  params.finish();
  return heads;
}

OwlNetwork build_owl_network(const OwlFiles& files) {
  weights::CheckpointParams params(files.checkpoint, files.key_map);
  OwlNetwork network(files.config, files.towers.config.vit, ParamSource(params));
  params.finish();
  return network;
}

}  // namespace vitrail::models
