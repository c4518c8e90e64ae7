// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/hiera/classifier.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/configured_files_internal.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

// transformers counts the blocks of each stage by themselves.
std::string transformers_keys(const HieraConfig& config) {
  std::string rules;
  const auto rule = [&](const std::string& from, const std::string& to) {
    rules += str(rules.empty() ? "" : ",", R"~({"from": "(?:hiera\\.)?)~", from, R"~(", "to": ")~", to, "\"}");
  };
  rule(R"~(embeddings\\.patch_embeddings\\.projection\\.(.*))~", "patch_embed.proj.$1");
  rule(R"~(embeddings\\.position_embeddings)~", "pos_embed");
  rule(R"~(pooler\\.layernorm\\.(.*))~", "head.norm.$1");
  rule(R"~(classifier\\.(.*))~", "head.fc.$1");
  int64_t block = 0;
  for (size_t s = 0; s < config.stages.size(); ++s) {
    for (int64_t i = 0; i < config.stages[s].depth; ++i, ++block) {
      const std::string from = str(R"~(encoder\\.stages\\.)~", s, R"~(\\.layers\\.)~", i, R"~(\\.)~");
      const std::string to = str("blocks.", block, ".");
      rule(from + R"~(layernorm_before\\.(.*))~", to + "norm1.$1");
      rule(from + R"~(layernorm_after\\.(.*))~", to + "norm2.$1");
      rule(from + "(.*)", to + "$1");
    }
  }
  return R"~({"name": "huggingface_hiera", "about": "transformers HieraForImageClassification", "rules": [)~" + rules +
         "]}";
}

constexpr const char* kTimmKeys = R"~({"name": "timm_hiera", "about": "timm's hiera", "rules": []})~";

bool has_name_ending(const weights::Checkpoint& checkpoint, const char* ending) {
  return std::ranges::any_of(checkpoint.names(), [&](const std::string& name) { return name.ends_with(ending); });
}

bool is_of_transformers(const weights::Checkpoint& checkpoint) {
  return has_name_ending(checkpoint, "encoder.stages.0.layers.0.attn.qkv.weight") &&
         has_name_ending(checkpoint, "embeddings.position_embeddings");
}

// No Vision Transformer has a projection beside the attention of a block.
bool is_of_timm(const weights::Checkpoint& checkpoint) {
  if (!checkpoint.has("pos_embed") || !checkpoint.has("head.norm.weight")) return false;
  return std::ranges::any_of(checkpoint.names(), [](const std::string& name) {
    return name.starts_with("blocks.") && name.ends_with(".proj.weight") && !name.ends_with(".attn.proj.weight");
  });
}

}  // namespace

HieraClassifier::HieraClassifier(const HieraClassifierConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      trunk_(config.trunk, params),
      norm_(config.trunk.stages.back().dim, config.trunk.norm_eps, params.child("head.norm")) {
  const int64_t classes = config.classes.vit.num_classes;
  if (classes > 0) head_.emplace(config.trunk.stages.back().dim, classes, true, params.child("head.fc"));
}

HieraOutput HieraClassifier::forward(const Tensor& images) const {
  const Tensor map = trunk_.forward(images).back();
  const Tensor cells = map.view({map.size(0), map.size(1) * map.size(2), map.size(3)});
  const Tensor features = norm_.forward(ops::mean(cells, 1));
  if (!head_) return {{}, traced(*this, features)};
  return {traced(*this, head_->forward(features)), features};
}

void HieraClassifier::visit(nn::Visitor& visitor) {
  trunk_.visit(visitor);
  visitor.child("head.norm", static_cast<nn::Module&>(norm_));
  if (head_) visitor.child("head.fc", static_cast<nn::Module&>(*head_));
}

bool is_hiera(const ModelFiles& files) { return is_of_transformers(files.first) || is_of_timm(files.first); }

HieraFiles open_hiera(const ModelFiles& files) {
  auto checkpoint = files.checkpoint();
  if (!is_present(files.config))
    throw Error(files.weights.front().string(), "config.json of transformers or timm beside it", "none");
  const PreprocessorFile preprocessor = preprocessor_file(files.config.parent_path());
  const std::string text = read_regular_text_file(files.config);
  HieraClassifierConfig config = read_hiera_config(text, files.config.string(), preprocessor.text, preprocessor.path);
  const std::string keys = is_of_transformers(files.first) ? transformers_keys(config.trunk) : kTimmKeys;
  return {std::move(checkpoint), weights::KeyMap::parse(keys, "key map"), std::move(config), text, preprocessor.text};
}

HieraClassifier load_hiera(const HieraFiles& files) { return load_configured<HieraClassifier>(files); }

}  // namespace vitrail::models
