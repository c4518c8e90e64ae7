// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/semantic/semantic_segmenter.h"

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/weights/checkpoint_params_internal.h"

namespace vitrail::models {
namespace {

constexpr std::string_view kBackbone = "backbone.";

bool has_linear_head(const weights::Checkpoint& checkpoint) {
  return checkpoint.has("head.conv_seg.weight") || checkpoint.has("decode_head.conv_seg.weight") ||
         checkpoint.has("conv_seg.weight");
}

// The family of the backbone's names.
std::string backbone_key_map(const weights::Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const std::string& name : checkpoint.names()) {
    if (name.starts_with(kBackbone)) names.push_back(name.substr(kBackbone.size()));
  }
  if (names.empty())
    throw Error(checkpoint.path(), "the backbone's tensors (\"backbone.…\") beside the head's", "a head alone");
  return weights::KeyMap::detect(names).name();
}

// MMSegmentation has a conv_seg in the auxiliary head, too, which is for training.
std::string key_map_of(const weights::Checkpoint& checkpoint) {
  return R"~({"name": "semantic_segmenter", "base": ")~" + backbone_key_map(checkpoint) +
         R"~(", "base_prefix": ["backbone\\.", "backbone."], "rules": [
    {"from": ".*num_batches_tracked", "drop": true},
    {"from": "auxiliary_head\\..*", "drop": true},
    {"from": "decode_head\\.(.*)", "to": "head.$1"}]})~";
}

}  // namespace

SemanticSegmenter::SemanticSegmenter(const SemanticConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      backbone_(config.backbone, params.child("backbone")),
      head_(make_semantic_head(config, params.child("head"))) {}

Tensor SemanticSegmenter::forward(const Tensor& images) const {
  const auto [rows, columns] = backbone_.grid_of(images.size(2), images.size(3));
  return head_->forward(backbone_.intermediates(images, config_.layers, config_.final_norm), rows, columns);
}

void SemanticSegmenter::visit(nn::Visitor& visitor) {
  visitor.child("backbone", static_cast<nn::Module&>(backbone_));
  visitor.child("head", static_cast<nn::Module&>(*head_));
}

bool is_semantic_segmenter(const ModelFiles& files) { return has_linear_head(files.first); }

SemanticSegmenter load_semantic_segmenter(const ModelFiles& files) {
  const auto checkpoint = files.checkpoint();
  const std::string keys = key_map_of(*checkpoint);
  if (!is_present(files.config))
    throw Error(files.weights.front().string(), "a config.json with \"segmentation\" beside it", "none");
  const SemanticConfig config = read_semantic_config(read_regular_text_file(files.config), files.config.string());
  weights::CheckpointParams params(checkpoint, weights::KeyMap::parse(keys, "key map"));
  SemanticSegmenter model(config, ParamSource(params));
  params.finish();
  return model;
}

}  // namespace vitrail::models
