// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/semantic/config.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/models/model_config.h"

namespace vitrail::models {
namespace {

constexpr const char* kOwnFields = "segmentation";

// Indices of blocks from the first; negative ones count from the end.
void check_layers(const std::string& where, SemanticConfig& config) {
  const int64_t depth = config.backbone.depth;
  for (int64_t& layer : config.layers) {
    if (layer < -depth || layer >= depth)
      throw Error(where, str("blocks from ", -depth, " to ", depth - 1), str(layer));
    if (layer < 0) layer += depth;
  }
  if (config.layers.empty()) throw Error(where, "at least one block", "none");
}

void check_labels(const std::string& where, const SemanticConfig& config) {
  constexpr int64_t kMaxClasses = 1 << 14;
  const int64_t classes = config.num_classes();
  if (classes < 1 || classes > kMaxClasses)
    throw Error(where, str("the names of 1 to ", kMaxClasses, " classes"), str(classes));
}

SemanticConfig read_own(const std::string& text, const std::string& path, const JsonFields& file) {
  const ModelConfig model = parse_model_config(text, "", path);
  SemanticConfig config;
  config.architecture = model.architecture;
  config.backbone = model.vit;
  config.backbone.num_classes = 0;
  config.backbone.dynamic_img_size = config.backbone.allow_remainder = true;
  config.preprocessing = model.preprocessing;
  const std::string where = file.path(kOwnFields);
  std::vector<Error> problems;
  JsonFieldReader reader(file.at(kOwnFields), where + ": ", problems);
  describe_segmentation(reader, config);
  reader.finish();
  if (!problems.empty()) throw problems.front();
  check_layers(where + ": layers", config);
  check_labels(where + ": labels", config);
  config.preprocessing.rule = ResizeRule::huggingface;  // the whole image, at the size of config.resize
  config.preprocessing.resize_to = config.preprocessing.input_size = config.resize.size;
  return config;
}

}  // namespace

void describe_segmentation(Fields& fields, SemanticConfig& config) {
  fields.choice({"head", "the head"}, config.head, {{"linear", SemanticHead::linear}});
  fields.integers({"layers", "blocks whose outputs the head reads, negative from the end"}, config.layers);
  fields.boolean({"final_norm", "whether the backbone's final norm is applied to them"}, config.final_norm);
  fields.boolean({"batch_norm", "a batch normalisation in front of the linear layer"}, config.batch_norm);
  fields.texts({"labels", "names of the classes"}, config.labels);
  fields.size({"size", "height and width of the input"}, config.resize.size);
  fields.boolean({"keep_aspect_ratio", "both sides have the scale of the one that changes less"},
                 config.resize.keep_aspect_ratio);
  fields.integer({"multiple", "both sides are multiples of it"}, config.resize.multiple, 1, 1024);
}

SemanticConfig read_semantic_config(const std::string& text, const std::string& path) {
  const Json json = parse_json(text, path);
  const JsonFields file(json, path);
  if (!file.has(kOwnFields)) throw Error(file.path(kOwnFields), "the head and the names of its classes", "none");
  return read_own(text, path, file);
}

std::string write_semantic_config(const SemanticConfig& config) {
  ModelConfig model{.architecture = config.architecture, .vit = config.backbone, .preprocessing = config.preprocessing};
  model.preprocessing.rule = ResizeRule::timm;
  Json json = Json::parse(write_model_config(model));
  json[kOwnFields] = json_of_fields(describe_segmentation, config);
  return json.dump(2) + "\n";
}

}  // namespace vitrail::models
