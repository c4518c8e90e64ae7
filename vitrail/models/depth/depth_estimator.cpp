// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/depth/depth_estimator.h"

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/configured_files_internal.h"
#include "vitrail/models/dense/sigmoid_internal.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layout.h"
#include "vitrail/ops/resize.h"

namespace vitrail::models {
namespace {

using kernels::Activation;

// The names of transformers.  Files have layers that the model does not use.
std::string transformers_keys(const DepthConfig& config) {
  const std::string& name = config.backbone_name;
  return R"~({"name": "huggingface_depth", "base": ")~" + config.backbone_key_map + R"~(", "base_prefix": [")~" + name +
         R"~(\\.", "backbone."], "rules": [
    {"from": "neck\\.fusion_stage\\.layers\\.0\\.residual_layer1\\..*", "drop": true},
    {"from": ".*num_batches_tracked", "drop": true},
    {"from": "dpt\\.(?:layernorm|pooler)\\..*", "drop": true},
    {"from": "(neck\\.reassemble_stage\\.readout_projects\\.\\d+)\\.0\\.(.*)", "to": "$1.$2"},
    {"from": "head\\.head\\.0\\.(.*)", "to": "head.conv1.$1"},
    {"from": "head\\.head\\.2\\.(.*)", "to": "head.conv2.$1"},
    {"from": "head\\.head\\.4\\.(.*)", "to": "head.conv3.$1"}]})~";
}

// The names of the authors' code, whose refinenet4 is the first layer of the fusion.
constexpr const char* kAuthorsKeys = R"~({
  "name": "depth_anything",
  "base": "dinov2_hub_registers",
  "base_prefix": ["pretrained\\.", "backbone."],
  "rules": [
    {"from": "depth_head\\.projects\\.(\\d)\\.(.*)", "to": "neck.reassemble_stage.layers.$1.projection.$2"},
    {"from": "depth_head\\.resize_layers\\.(\\d)\\.(.*)", "to": "neck.reassemble_stage.layers.$1.resize.$2"},
    {"from": "depth_head\\.scratch\\.layer1_rn\\.(.*)", "to": "neck.convs.0.$1"},
    {"from": "depth_head\\.scratch\\.layer2_rn\\.(.*)", "to": "neck.convs.1.$1"},
    {"from": "depth_head\\.scratch\\.layer3_rn\\.(.*)", "to": "neck.convs.2.$1"},
    {"from": "depth_head\\.scratch\\.layer4_rn\\.(.*)", "to": "neck.convs.3.$1"},
    {"from": "depth_head\\.scratch\\.refinenet4\\.resConfUnit1\\..*", "drop": true},
    {"from": "depth_head\\.scratch\\.refinenet4\\.resConfUnit(\\d)\\.conv(\\d)\\.(.*)",
     "to": "neck.fusion_stage.layers.0.residual_layer$1.convolution$2.$3"},
    {"from": "depth_head\\.scratch\\.refinenet4\\.out_conv\\.(.*)", "to": "neck.fusion_stage.layers.0.projection.$1"},
    {"from": "depth_head\\.scratch\\.refinenet3\\.resConfUnit(\\d)\\.conv(\\d)\\.(.*)",
     "to": "neck.fusion_stage.layers.1.residual_layer$1.convolution$2.$3"},
    {"from": "depth_head\\.scratch\\.refinenet3\\.out_conv\\.(.*)", "to": "neck.fusion_stage.layers.1.projection.$1"},
    {"from": "depth_head\\.scratch\\.refinenet2\\.resConfUnit(\\d)\\.conv(\\d)\\.(.*)",
     "to": "neck.fusion_stage.layers.2.residual_layer$1.convolution$2.$3"},
    {"from": "depth_head\\.scratch\\.refinenet2\\.out_conv\\.(.*)", "to": "neck.fusion_stage.layers.2.projection.$1"},
    {"from": "depth_head\\.scratch\\.refinenet1\\.resConfUnit(\\d)\\.conv(\\d)\\.(.*)",
     "to": "neck.fusion_stage.layers.3.residual_layer$1.convolution$2.$3"},
    {"from": "depth_head\\.scratch\\.refinenet1\\.out_conv\\.(.*)", "to": "neck.fusion_stage.layers.3.projection.$1"},
    {"from": "depth_head\\.scratch\\.output_conv1\\.(.*)", "to": "head.conv1.$1"},
    {"from": "depth_head\\.scratch\\.output_conv2\\.0\\.(.*)", "to": "head.conv2.$1"},
    {"from": "depth_head\\.scratch\\.output_conv2\\.2\\.(.*)", "to": "head.conv3.$1"}]})~";

Tensor scaled(const Tensor& x, double factor) { return factor == 1 ? x : ops::mul(x, Tensor::full({1}, factor)); }

bool has_authors_names(const weights::Checkpoint& checkpoint) {
  return checkpoint.has("depth_head.scratch.refinenet4.out_conv.weight") &&
         checkpoint.has("depth_head.scratch.output_conv2.2.weight");
}

// Fills in the configuration and its texts.
void read_config(const ModelFiles& files, DepthFiles& opened) {
  const std::string weights = files.weights.front().string();
  if (is_present(files.config)) {
    const PreprocessorFile preprocessor = preprocessor_file(files.config.parent_path());
    opened.config_json = read_regular_text_file(files.config);
    opened.preprocessor_json = preprocessor.text;
    opened.config = read_depth_config(opened.config_json, files.config.string(), preprocessor.text, preprocessor.path);
    return;
  }
  if (!has_authors_names(*opened.checkpoint)) throw Error(weights, "a config.json of transformers beside it", "none");
  opened.config = depth_config_of_file(*opened.checkpoint, weights);
  opened.config_json = write_depth_anything_config(opened.config);
  opened.preprocessor_json = write_depth_processor(opened.config);
}

}  // namespace

DepthHead::DepthHead(const DepthConfig& config, const ParamSource& params)
    : Module(params.path()),
      conv1_({.in_chans = config.neck.fusion_dim, .out_chans = config.neck.fusion_dim / 2, .kernel = 3},
             params.child("conv1")),
      conv2_({.in_chans = config.neck.fusion_dim / 2, .out_chans = config.head_dim, .kernel = 3},
             params.child("conv2")),
      conv3_({.in_chans = config.head_dim, .out_chans = 1}, params.child("conv3")) {
  if (!config.head_projection) return;
  const int64_t dim = config.neck.fusion_dim;
  projection_.emplace(nn::Conv2dConfig{.in_chans = dim, .out_chans = dim, .kernel = 3}, params.child("projection"));
}

Tensor DepthHead::forward(const Tensor& x, std::array<int64_t, 2> size) const {
  const Tensor projected = projection_ ? projection_->forward(x, Activation::relu) : x;
  const Tensor large = ops::resize_map(conv1_.forward(projected), size[0], size[1], ops::Corners::aligned);
  return nn::traced(*this, conv3_.forward(conv2_.forward(large, Activation::relu)).squeeze(3));
}

void DepthHead::visit(nn::Visitor& visitor) {
  if (projection_) visitor.child("projection", projection_);
  visitor.child("conv1", static_cast<nn::Module&>(conv1_));
  visitor.child("conv2", static_cast<nn::Module&>(conv2_));
  visitor.child("conv3", static_cast<nn::Module&>(conv3_));
}

DepthEstimator::DepthEstimator(const DepthConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      backbone_(config.backbone, params.child("backbone")),
      neck_(config.neck, params.child("neck")),
      head_(config, params.child("head")) {}

Tensor DepthEstimator::forward(const Tensor& images) const {
  const auto [rows, columns] = backbone_.grid_of(images.size(2), images.size(3));
  const Tensor fused =
      neck_.forward(backbone_.intermediates(images, config_.layers, config_.final_norm), rows, columns);
  const auto& patch = config_.backbone.patch_size;
  const std::array<int64_t, 2> doubled{2 * fused.size(1), 2 * fused.size(2)};
  const Tensor output =
      head_.forward(fused, config_.head_doubles ? doubled : std::array{rows * patch[0], columns * patch[1]});
  if (!config_.metric) return scaled(ops::activation(output, Activation::relu), config_.max_depth);
  return scaled(sigmoid(output), config_.max_depth);
}

void DepthEstimator::visit(nn::Visitor& visitor) {
  visitor.child("backbone", static_cast<nn::Module&>(backbone_));
  visitor.child("neck", static_cast<nn::Module&>(neck_));
  visitor.child("head", static_cast<nn::Module&>(head_));
}

bool is_depth_estimator(const ModelFiles& files) {
  const weights::Checkpoint& first = files.first;
  return has_authors_names(first) || (first.has("neck.fusion_stage.layers.0.projection.weight") &&
                                      (first.has("head.conv3.weight") || first.has("head.head.0.weight")));
}

DepthFiles open_depth_estimator(const ModelFiles& files) {
  DepthFiles opened{.checkpoint = files.checkpoint(), .key_map = weights::KeyMap::parse(kAuthorsKeys, "key map")};
  const weights::Checkpoint& checkpoint = *opened.checkpoint;
  if (checkpoint.has("head.head.0.weight") && !checkpoint.has("head.head.2.weight"))
    throw Error(checkpoint.path(), "the head of a depth estimator", "another, such as DPTForSemanticSegmentation's");
  read_config(files, opened);
  if (!has_authors_names(checkpoint))
    opened.key_map = weights::KeyMap::parse(transformers_keys(opened.config), "key map");
  return opened;
}

DepthEstimator load_depth_estimator(const DepthFiles& files) { return load_configured<DepthEstimator>(files); }

}  // namespace vitrail::models
