// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/semantic/semantic_segmenter.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/configured_files_internal.h"
#include "vitrail/ops/layout.h"

namespace vitrail::models {
namespace {

constexpr std::string_view kBackbone = "backbone.";

// The last layer of each head, and another that tells it from other models.
constexpr std::pair<const char*, const char*> kTensors[] = {
    {"head.conv_seg.weight", "head.conv_seg.weight"},
    {"decode_head.conv_seg.weight", "decode_head.bn.running_mean"},
    {"head.conv2.weight", "head.neck.convs.0.weight"},
    {"head.head.4.weight", "head.head.1.running_mean"},
    {"decode_head.classifier.weight", "decode_head.fpn_bottleneck.conv.weight"},
    {"decode_head.classifier.weight", "decode_head.fpn_bottleneck.convolution.weight"}};

// DINOv2's head files, which have no backbone.
bool is_head_alone(const weights::Checkpoint& checkpoint) {
  return std::ranges::all_of(checkpoint.names(), [](const std::string& name) {
    return name.starts_with("decode_head.") || name.starts_with("auxiliary_head.") || name.starts_with("head.");
  });
}

// The family of the backbone's names.
std::string backbone_key_map(const weights::Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const std::string& name : checkpoint.names()) {
    if (name.starts_with(kBackbone)) names.push_back(name.substr(kBackbone.size()));
  }
  return weights::KeyMap::detect(names).name();
}

// Auxiliary heads are for training.
std::string semantic_keys(const SemanticConfig& config, const weights::Checkpoint& checkpoint) {
  const std::string& name = config.backbone_name;
  const std::string base = config.backbone_key_map.empty() ? backbone_key_map(checkpoint) : config.backbone_key_map;
  const std::string unused =
      config.backbone.final_norm ? "" : R"~({"from": ")~" + name + R"~(\\.(?:layernorm|pooler)\\..*", "drop": true},)~";
  return R"~({"name": "semantic_segmenter", "base": ")~" + base + R"~(", "base_prefix": [")~" + name +
         R"~(\\.", "backbone."], "rules": [)~" + unused + R"~(
    {"from": ".*num_batches_tracked", "drop": true},
    {"from": "auxiliary_head\\..*", "drop": true},
    {"from": "neck\\.fusion_stage\\.layers\\.0\\.residual_layer1\\..*", "drop": true},
    {"from": "(neck\\.reassemble_stage\\.readout_projects\\.\\d+)\\.0\\.(.*)", "to": "head.$1.$2"},
    {"from": "(neck|fpn1|fpn2)\\.(.*)", "to": "head.$1.$2"},
    {"from": "head\\.head\\.0\\.(.*)", "to": "head.conv1.conv.$1"},
    {"from": "head\\.head\\.1\\.(.*)", "to": "head.conv1.bn.$1"},
    {"from": "head\\.head\\.4\\.(.*)", "to": "head.conv2.$1"},
    {"from": "decode_head\\.psp_modules\\.(\\d+)\\.1\\.(.*)", "to": "head.psp_modules.$1.$2"},
    {"from": "decode_head\\.psp_modules\\.blocks\\.(\\d+)\\.conv\\.convolution\\.(.*)",
     "to": "head.psp_modules.$1.conv.$2"},
    {"from": "decode_head\\.psp_modules\\.blocks\\.(\\d+)\\.conv\\.normalization\\.(.*)",
     "to": "head.psp_modules.$1.bn.$2"},
    {"from": "decode_head\\.psp_bottleneck\\.convolution\\.(.*)", "to": "head.bottleneck.conv.$1"},
    {"from": "decode_head\\.psp_bottleneck\\.normalization\\.(.*)", "to": "head.bottleneck.bn.$1"},
    {"from": "decode_head\\.(.*)\\.convolution\\.(.*)", "to": "head.$1.conv.$2"},
    {"from": "decode_head\\.(.*)\\.normalization\\.(.*)", "to": "head.$1.bn.$2"},
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

Tensor SemanticSegmenter::channels_first(const Tensor& images) const {
  return ops::contiguous(forward(images).permute({0, 3, 1, 2}));
}

void SemanticSegmenter::visit(nn::Visitor& visitor) {
  visitor.child("backbone", static_cast<nn::Module&>(backbone_));
  visitor.child("head", static_cast<nn::Module&>(*head_));
}

bool is_semantic_segmenter(const weights::Checkpoint& checkpoint) {
  return std::ranges::any_of(
      kTensors, [&](const auto& pair) { return checkpoint.has(pair.first) && checkpoint.has(pair.second); });
}

SemanticFiles open_semantic_segmenter(const ModelFiles& files) {
  auto checkpoint = files.checkpoint();
  if (is_head_alone(*checkpoint)) {
    throw Error(checkpoint->path(),
                "the backbone's tensors, as \"backbone.…\", in one file with the head's, and beside it a config.json "
                "with \"segmentation\" (docs/maps.md)",
                "a head alone");
  }
  if (!is_present(files.config))
    throw Error(files.weights.front().string(), "a config.json of transformers or with \"segmentation\" beside it",
                "none");
  const PreprocessorFile preprocessor = preprocessor_file(files.config.parent_path());
  const std::string text = read_regular_text_file(files.config);
  SemanticConfig config = read_semantic_config(text, files.config.string(), preprocessor.text, preprocessor.path);
  weights::KeyMap key_map = weights::KeyMap::parse(semantic_keys(config, *checkpoint), "key map");
  return {std::move(checkpoint), std::move(key_map), std::move(config), text, preprocessor.text};
}

SemanticSegmenter load_semantic_segmenter(const SemanticFiles& files) {
  return load_configured<SemanticSegmenter>(files);
}

}  // namespace vitrail::models
