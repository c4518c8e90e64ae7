// SPDX-License-Identifier: Apache-2.0
#pragma once
// The contents of config.json: the model, its preprocessing and its labels.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/int8_config.h"
#include "vitrail/models/preprocessing.h"
#include "vitrail/models/text_transformer_config.h"
#include "vitrail/models/vision_transformer_config.h"

namespace vitrail::models {

// What the logits of a classifier mean: one of the classes is right, or each label is right or not by itself.  Those of
// a regression are the values themselves.
enum class ProblemType : uint8_t { single_label, multi_label, regression };

struct ModelConfig {
  std::string architecture{};  // the registered name, "vit", or Hugging Face's model_type
  VisionTransformerConfig vit{};
  Preprocessing preprocessing{};
  std::vector<std::string> labels{};          // class names in index order; empty if the file has none
  std::vector<std::string> descriptions{};    // longer class names in index order; may be empty
  std::optional<ProblemType> problem_type{};  // "problem_type"; unset: as gives_sigmoid() says
  std::optional<Int8Config> int8{};
  std::string tag{};                            // what timm's weights were trained on, "augreg_in21k_ft_in1k"
  std::optional<TextTransformerConfig> text{};  // the text tower of a dual model; unset: an image model alone
  std::string key_map{};  // "key_map": a path, a built-in family's name, or JSON; empty: detect from the tensor names
};

// Whether probabilities are the sigmoid of each logit instead of the softmax over all: for problem_type
// multi_label_classification, and for a head with one class, whose softmax would always be 1, unless it is a
// regression.
bool gives_sigmoid(const ModelConfig& config);

// What gives the predictions from the logits: "softmax", "sigmoid", or "none" for a regression.
const char* activation_of(const ModelConfig& config);

// Whether the classes are ImageNet-1k's: there are 1,000, and the tag says that the weights were trained on them.
bool has_imagenet_classes(const ModelConfig& config);

// Throws Error naming `where` for a model without a head, and for one whose head is a projection (CLIP) or is applied
// to each token (global_pool "").
void require_classifier(const ModelConfig& config, const std::string& where);

// Throws Error naming `where` for a regression, which has no right classes to train for or to count.
void refuse_regression(const ModelConfig& config, const std::string& where);

// Reads timm's config.json, the "vit" form, or Hugging Face transformers' config.json with its
// preprocessor_config.json (empty if there is none).  `where` names the file in errors, preprocessor_path the second
// one.  family_args: model_args of the weights' family (KeyMap::model_args()), which are between the architecture's and
// the file's own in the first two formats.  Throws Error naming the path of an unknown key in model_args, a wrong type,
// or an invalid value.
ModelConfig parse_model_config(const std::string& json, const std::string& preprocessor_json, const std::string& where,
                               const std::string& family_args = "", const std::string& preprocessor_path = "");

// config.json for the hub layout; parse_model_config reads the same configuration from it.  "architecture" is a name
// that timm registers if timm's arguments (model_args) can express the differences; fields without such an argument
// that do not change the parameters are in vitrail_args.  Otherwise "architecture" is "vit".
std::string write_model_config(const ModelConfig& config);

// preprocessor_config.json for rule huggingface; empty for rule timm, whose settings are in config.json.
std::string write_preprocessor_config(const Preprocessing& preprocessing);

}  // namespace vitrail::models
