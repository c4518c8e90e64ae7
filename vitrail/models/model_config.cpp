// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/model_config.h"

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/derived_config_internal.h"

namespace vitrail::models {
namespace {

// "key_map" is a name, a path, or a JSON object.
std::string key_map_of(const JsonFields& file) {
  const Json& value = file.at("key_map");
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::optional<ProblemType> problem_type_of(const JsonFields& file) {
  const auto name = file.text("problem_type");
  if (!name) return std::nullopt;
  if (*name == "single_label_classification") return ProblemType::single_label;
  if (*name == "multi_label_classification") return ProblemType::multi_label;
  // Features and logits of other models are still right.
  warn(str(file.path("problem_type"), ": \"", name->substr(0, 80), "\": the outputs are no probabilities of classes"));
  return *name == "regression" ? std::optional(ProblemType::regression) : std::nullopt;
}

}  // namespace

bool gives_sigmoid(const ModelConfig& config) {
  if (config.problem_type == ProblemType::regression) return false;
  return config.problem_type == ProblemType::multi_label || config.vit.num_classes == 1;
}

const char* activation_of(const ModelConfig& config) {
  if (config.problem_type == ProblemType::regression) return "none";
  return gives_sigmoid(config) ? "sigmoid" : "softmax";
}

void refuse_regression(const ModelConfig& config, const std::string& where) {
  if (config.problem_type != ProblemType::regression) return;
  throw Error(where, "a model for classification", "problem_type \"regression\"");
}

void require_classifier(const ModelConfig& config, const std::string& where) {
  if (config.vit.global_pool == GlobalPool::none) {
    throw Error(where, "a model with a classifier of the pooled features", "logits of each token (global_pool \"\")");
  }
  if (config.vit.num_classes > 0 && !config.vit.projection_head) return;
  throw Error(
      where, "a model with a classifier",
      str("a model without a head (use embed", config.text ? ", or zeroshot with the names of the classes)" : ")"));
}

bool has_imagenet_classes(const ModelConfig& config) {
  return config.vit.num_classes == 1000 && ("_" + config.tag + "_").find("_in1k_") != std::string::npos;
}

ModelConfig parse_model_config(const std::string& text, const std::string& preprocessor_text, const std::string& where,
                               const std::string& family_args, const std::string& preprocessor_path) {
  const Json json = parse_json(text, where);
  const JsonFields file(json, where);
  const std::string processor_where =
      preprocessor_path.empty() ? where + " (preprocessor_config.json)" : preprocessor_path;
  const Json preprocessor = preprocessor_text.empty() ? Json() : parse_json(preprocessor_text, processor_where);
  ModelConfig config;
  if (file.text("architecture")) {
    config = read_timm_config(json, where, family_args);
    // A model converted from Hugging Face keeps the steps of its processor.
    if (!preprocessor.is_null() && !config.preprocessing.crop_pct) {
      config.preprocessing = read_preprocessor(preprocessor, file, config.vit, processor_where);
    }
  } else if (file.text("model_type")) {
    config = read_huggingface_config(json, preprocessor, where, processor_where);
  } else if (is_open_clip(file)) {
    config = read_open_clip_config(json, where);
  } else {
    throw Error(where, "\"architecture\" (timm), \"model_type\" (Hugging Face) or \"model_cfg\" (OpenCLIP)",
                "none of them");
  }
  if (file.has("key_map")) config.key_map = key_map_of(file);
  config.problem_type = problem_type_of(file);
  check_preprocessing(config.preprocessing, config.vit.in_chans, where);
  try {
    checked(config.vit);
  } catch (const Error& error) {
    throw Error(where + ": " + error.what());
  }
  const size_t labels = config.labels.size();
  if (labels != 0 && labels != static_cast<size_t>(config.vit.num_classes)) {
    throw Error(where, str(config.vit.num_classes, " label names, as num_classes requires"), str(labels));
  }
  return config;
}

}  // namespace vitrail::models
