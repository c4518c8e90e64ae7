// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/vitpose/vitpose.h"

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/configured_files_internal.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/models/layer_configs_internal.h"
#include "vitrail/nn/folded_batch_norm.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layout.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

using kernels::Activation;

constexpr int64_t kPadding = 2;       // the patches' convolution has it
constexpr int64_t kDecoderDim = 256;  // the transposed convolutions give it

// The names of transformers.
constexpr const char* kVitPoseKeys = R"~("base": "huggingface_vit", "base_prefix": ["backbone\\.", "backbone."],
  "rules": [{"from": ".*num_batches_tracked", "drop": true},
    {"from": "backbone\\.encoder\\.layer\\.(\\d+)\\.mlp\\.experts\\.DATASET\\.(.*)",
     "to": "backbone.blocks.$1.mlp.expert.$2"},
    {"from": "backbone\\.encoder\\.layer\\.\\d+\\.mlp\\.experts\\..*", "drop": true}]})~";

// The names of the authors' code.
constexpr const char* kVitPoseAuthorsKeys = R"~("base": "timm", "base_prefix": ["backbone\\.", "backbone."],
  "rules": [{"from": ".*num_batches_tracked", "drop": true},
    {"from": "backbone\\.blocks\\.(\\d+)\\.mlp\\.experts\\.DATASET\\.(.*)", "to": "backbone.blocks.$1.mlp.expert.$2"},
    {"from": "backbone\\.blocks\\.\\d+\\.mlp\\.experts\\..*", "drop": true},
    {"from": "backbone\\.last_norm\\.(.*)", "to": "backbone.norm.$1"},
    {"from": "HEAD\\.deconv_layers\\.0\\.(.*)", "to": "head.deconv1.$1"},
    {"from": "HEAD\\.deconv_layers\\.1\\.(.*)", "to": "head.batchnorm1.$1"},
    {"from": "HEAD\\.deconv_layers\\.3\\.(.*)", "to": "head.deconv2.$1"},
    {"from": "HEAD\\.deconv_layers\\.4\\.(.*)", "to": "head.batchnorm2.$1"},
    {"from": "HEAD\\.final_layer\\.(.*)", "to": "head.conv.$1"},
    {"from": "(?:keypoint_head|associate_keypoint_heads)\\..*", "drop": true}]})~";

std::string replaced(std::string text, const std::string& word, const std::string& by) {
  for (size_t at = 0; (at = text.find(word, at)) != text.npos; at += by.size()) text.replace(at, word.size(), by);
  return text;
}

weights::KeyMap vitpose_key_map(bool of_authors, int64_t dataset) {
  std::string text = replaced(of_authors ? kVitPoseAuthorsKeys : kVitPoseKeys, "DATASET", std::to_string(dataset));
  text = replaced(text, "HEAD", replaced(authors_head(dataset), ".", "\\\\."));
  return weights::KeyMap::parse(str("{\"name\": \"", of_authors ? "vitpose" : "huggingface_vitpose", "\", ", text),
                                "key map");
}

bool has_vitpose_authors_names(const weights::Checkpoint& checkpoint) {
  return checkpoint.has("backbone.last_norm.weight") && checkpoint.has("keypoint_head.final_layer.weight");
}

// Zeros in front of an axis, and behind it.
Tensor padded(const Tensor& x, int axis, int64_t front, int64_t behind) {
  const auto zeros = [&](int64_t count) {
    Shape shape = x.shape(), one = x.shape();
    for (int i = 0; i < one.rank(); ++i) one[i] = 1;
    shape[axis] = count;
    return Tensor::zeros(one, x.dtype()).expand(shape);
  };
  std::vector<Tensor> parts;
  if (front > 0) parts.push_back(zeros(front));
  parts.push_back(x);
  if (behind > 0) parts.push_back(zeros(behind));
  return ops::cat(parts, axis);
}

// The second layer of an MLP with the rows of an expert behind its own.
class ExpertParams : public ParamProvider {
 public:
  ExpertParams(ParamProvider& file, int64_t features) : file_(file), features_(features) {}
  Tensor get(const std::string& path, const Shape& shape, const Initializer& init) override {
    const std::string layer = ".mlp.fc2.";
    const size_t at = path.find(layer);
    if (features_ == 0 || at == path.npos) return file_.get(path, shape, init);
    Shape shared = shape, own = shape;
    shared[0] -= own[0] = features_;
    const std::string expert = std::string(path).replace(at, layer.size(), ".mlp.expert.");
    return ops::cat({file_.get(path, shared, init), file_.get(expert, own, init)}, 0);
  }
  bool has(const std::string& path) const override { return file_.has(path); }
  void finish() override { file_.finish(); }

 private:
  ParamProvider& file_;
  int64_t features_;
};

}  // namespace

VitPoseBackbone::VitPoseBackbone(const VitPoseConfig& config, const ParamSource& params)
    : VitBackbone(params.path()),
      config_(checked(config.backbone)),
      patch_embed_(patch_embed_config(config_), params.child("patch_embed")),
      blocks_("blocks"),
      norm_(config_.embed_dim, config_.norm_eps, params.child("norm")) {
  const auto [rows, columns] = own_grid(config_);
  pos_embed_ = params.get("pos_embed", {1, 1 + rows * columns, config_.embed_dim}, token_init_of(config_).positions);
  for (int64_t i = 0; i < config_.depth; ++i)
    blocks_.emplace_back(block_config(config_, i), params.child("blocks").child(i));
}

// The convolution drops pixels at the right and below, so that zeros are needed in front alone.
Tensor VitPoseBackbone::forward(const Tensor& images) const {
  const auto [rows, columns] = own_grid(config_);
  if (images.rank() != 4 || images.size(2) != config_.img_size[0] || images.size(3) != config_.img_size[1])
    throw Error("images", str("crops of ", config_.img_size[0], "×", config_.img_size[1]), images.shape().to_string());
  const Tensor patches = patch_embed_.forward(padded(padded(images, 2, kPadding, 0), 3, kPadding, 0));
  const Tensor positions = ops::add(pos_embed_.narrow(1, 1, rows * columns), pos_embed_.narrow(1, 0, 1));
  Tensor x = ops::add(patches.to(images.dtype()), positions.to(images.dtype()));  // the residual stream stays f32
  for (int64_t i = 0; i < config_.depth; ++i) x = blocks_[i].forward(x);
  return norm_.forward(x).view({images.size(0), rows, columns, config_.embed_dim});
}

void VitPoseBackbone::visit(nn::Visitor& visitor) {
  visitor.parameter("pos_embed", pos_embed_);
  visitor.child("patch_embed", static_cast<nn::Module&>(patch_embed_));
  visitor.child("blocks", static_cast<nn::Module&>(blocks_));
  visitor.child("norm", static_cast<nn::Module&>(norm_));
}

// Cell i of the input gives cells 2·i + k − 1 of the result by weight k.  Corner i is between cells i − 1 and i: it
// gives cells 2·i − 1 + r, where cell i − a has weight k = 2·a + r.
VitPoseDeconvolution::VitPoseDeconvolution(int64_t in, int64_t out, const ParamSource& deconvolution,
                                           const ParamSource& norm)
    : Module(deconvolution.path()) {
  nn::FoldedBatchNorm folded(deconvolution, norm, false, 1e-5, 1);
  const ParamSource params(folded, deconvolution.path());
  constexpr int64_t kKernel = 4;
  const Initializer init = nn::init::torch_default(out * kKernel * kKernel);
  const Tensor weight = params.get("weight", {in, out, kKernel, kKernel}, init);
  // [in, out, a_y, r_y, a_x, r_x] → [out, r_y, r_x, a_y, a_x, in]
  weight_ = weight.view({in, out, 2, 2, 2, 2}).permute({1, 3, 5, 2, 4, 0}).reshape({4 * out, 4 * in});
  bias_ = params.get("bias", {out}, init);
}

Tensor VitPoseDeconvolution::forward(const Tensor& x) const {
  const int64_t rows = x.size(1), columns = x.size(2), out = bias_.size(0);
  const Tensor around = padded(padded(x, 1, 1, 1), 2, 1, 1);
  std::vector<Tensor> cells;
  for (const int64_t a_y : {0, 1}) {
    for (const int64_t a_x : {0, 1})
      cells.push_back(around.narrow(1, 1 - a_y, rows + 1).narrow(2, 1 - a_x, columns + 1));
  }
  const Tensor bias = bias_.unsqueeze(1).expand({out, 4}).reshape({4 * out});
  const Tensor corners = ops::linear(ops::cat(cells, 3), weight_, bias, Activation::relu);
  const Tensor shuffled = ops::pixel_shuffle(corners, 2);  // [B, 2·(h + 1), 2·(w + 1), out]
  return nn::traced(*this, ops::contiguous(shuffled.narrow(1, 1, 2 * rows).narrow(2, 1, 2 * columns)));
}

void VitPoseDeconvolution::visit(nn::Visitor& visitor) {
  visitor.parameter("weight", weight_);
  visitor.parameter("bias", bias_);
}

VitPoseDecoder::VitPoseDecoder(const VitPoseConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      conv_({.in_chans = config.simple_decoder ? config.backbone.embed_dim : kDecoderDim,
             .out_chans = config.num_keypoints(),
             .kernel = config.simple_decoder ? 3 : 1},
            params.child("conv")) {
  if (config.simple_decoder) return;
  deconv1_.emplace(config.backbone.embed_dim, kDecoderDim, params.child("deconv1"), params.child("batchnorm1"));
  deconv2_.emplace(kDecoderDim, kDecoderDim, params.child("deconv2"), params.child("batchnorm2"));
}

Tensor VitPoseDecoder::forward(const Tensor& map) const {
  const int64_t factor = config_.scale_factor;
  const Tensor large = config_.simple_decoder ? ops::resize_map(ops::activation(map, Activation::relu),
                                                                factor * map.size(1), factor * map.size(2))
                                              : deconv2_->forward(deconv1_->forward(map));
  return nn::traced(*this, ops::contiguous(conv_.forward(large).permute({0, 3, 1, 2})));
}

void VitPoseDecoder::visit(nn::Visitor& visitor) {
  if (deconv1_) visitor.child("deconv1", deconv1_);
  if (deconv2_) visitor.child("deconv2", deconv2_);
  visitor.child("conv", static_cast<nn::Module&>(conv_));
}

VitPose::VitPose(const VitPoseConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      backbone_(config, params.child("backbone")),
      head_(config, params.child("head")) {}

void VitPose::visit(nn::Visitor& visitor) {
  visitor.child("backbone", static_cast<nn::Module&>(backbone_));
  visitor.child("head", static_cast<nn::Module&>(head_));
}

// In int8 files the backbone has native names.
bool is_vitpose(const ModelFiles& files) {
  const weights::Checkpoint& first = files.first;
  if (has_vitpose_authors_names(first)) return true;
  const bool classic = first.has("head.deconv1.weight") && first.has("head.batchnorm1.weight");
  const bool backbone =
      (first.has("backbone.embeddings.position_embeddings") && first.has("backbone.layernorm.weight")) ||
      (first.has("backbone.pos_embed") && first.has("backbone.norm.weight"));
  return backbone && first.has("head.conv.weight") && (classic || !first.has("head.deconv1.weight"));
}

VitPoseFiles open_vitpose(const ModelFiles& files, int64_t dataset) {
  VitPoseFiles opened{.checkpoint = files.checkpoint(), .key_map = {}};
  const weights::Checkpoint& checkpoint = *opened.checkpoint;
  const bool of_authors = has_vitpose_authors_names(checkpoint);
  if (is_present(files.config)) {
    const PreprocessorFile preprocessor = preprocessor_file(files.config.parent_path());
    opened.config_json = read_regular_text_file(files.config);
    opened.preprocessor_json = preprocessor.text;
    opened.config =
        read_vitpose_config(opened.config_json, files.config.string(), preprocessor.text, preprocessor.path);
  } else if (of_authors) {
    opened.config = vitpose_config_of_file(checkpoint, dataset);
    opened.config_json = write_vitpose_config(opened.config);
    opened.preprocessor_json = write_vitpose_processor(opened.config);
  } else {
    throw Error(files.weights.front().string(), "a config.json of transformers beside it", "none");
  }
  const int64_t experts = opened.config.num_experts;
  if (dataset < 0 || dataset >= experts)
    throw Error("dataset", experts == 1 ? "0, the only one of this model" : str("0 to ", experts - 1), str(dataset));
  opened.key_map = vitpose_key_map(of_authors, dataset);
  return opened;
}

VitPose load_vitpose(const VitPoseFiles& files) {
  weights::CheckpointParams params = params_of(files);
  ExpertParams with_expert(params, files.config.expert_features);
  VitPose model(files.config, ParamSource(with_expert));
  with_expert.finish();
  return model;
}

}  // namespace vitrail::models
