// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/vitmatte/vitmatte.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/configured_files_internal.h"
#include "vitrail/models/dense/sigmoid_internal.h"
#include "vitrail/nn/folded_batch_norm.h"
#include "vitrail/nn/positional_encoding.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

using kernels::Activation;

// transformers' names as those of Segment Anything's image encoder.  The residual of block B is `residuals.i`, i its
// place among them.
std::string vitmatte_keys(const VitMatteConfig& config) {
  std::string rules = R"~({"name": "huggingface_vitmatte", "rules": [
    {"from": ".*num_batches_tracked", "drop": true},
    {"from": "backbone\\.embeddings\\.projection\\.(.*)", "to": "backbone.patch_embed.proj.$1"},
    {"from": "backbone\\.embeddings\\.position_embeddings", "to": "backbone.pos_embed"})~";
  for (size_t i = 0; i < config.residual_blocks.size(); ++i) {
    rules += str(R"~(,
    {"from": "backbone\\.encoder\\.layer\\.)~",
                 config.residual_blocks[i], R"~(\\.residual\\.(.*)", "to": "backbone.residuals.)~", i, R"~(.$1"})~");
  }
  return rules + R"~(,
    {"from": "backbone\\.encoder\\.layer\\.(\\d+)\\.attention\\.(.*)", "to": "backbone.blocks.$1.attn.$2"},
    {"from": "backbone\\.encoder\\.layer\\.(\\d+)\\.mlp\\.fc(\\d)\\.(.*)", "to": "backbone.blocks.$1.mlp.lin$2.$3"},
    {"from": "backbone\\.encoder\\.layer\\.(\\d+)\\.(norm\\d\\..*)", "to": "backbone.blocks.$1.$2"},
    {"from": "decoder\\.fusion_blocks\\.(\\d+)\\.conv\\.(.*)", "to": "decoder.fusion_blocks.$1.$2"}]})~";
}

nn::Conv2d folded(const nn::Conv2dConfig& shape, const ParamSource& convolution, const ParamSource& norm, bool bias,
                  double eps = 1e-5) {
  nn::FoldedBatchNorm provider(convolution, norm, bias, eps);
  return {shape, ParamSource(provider, convolution.path())};
}

}  // namespace

VitDetResidual::VitDetResidual(int64_t dim, const ParamSource& params)
    : Module(params.path()),
      conv1_({.in_chans = dim, .out_chans = dim / 2, .bias = false}, params.child("conv1")),
      norm1_(dim / 2, kSamNormEps, params.child("norm1")),
      conv2_({.in_chans = dim / 2, .out_chans = dim / 2, .kernel = 3, .bias = false}, params.child("conv2")),
      norm2_(dim / 2, kSamNormEps, params.child("norm2")),
      conv3_({.in_chans = dim / 2, .out_chans = dim, .bias = false}, params.child("conv3")),
      norm3_(dim, kSamNormEps, params.child("norm3")) {}

Tensor VitDetResidual::forward(const Tensor& x) const {
  Tensor y = ops::activation(norm1_.forward(conv1_.forward(x)), Activation::gelu);
  y = ops::activation(norm2_.forward(conv2_.forward(y)), Activation::gelu);
  return nn::traced(*this, ops::residual_add(x, norm3_.forward(conv3_.forward(y))));
}

void VitDetResidual::visit(nn::Visitor& visitor) {
  visitor.child("conv1", static_cast<nn::Module&>(conv1_));
  visitor.child("norm1", static_cast<nn::Module&>(norm1_));
  visitor.child("conv2", static_cast<nn::Module&>(conv2_));
  visitor.child("norm2", static_cast<nn::Module&>(norm2_));
  visitor.child("conv3", static_cast<nn::Module&>(conv3_));
  visitor.child("norm3", static_cast<nn::Module&>(norm3_));
}

VitDetBackbone::VitDetBackbone(const VitMatteConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      patch_embed_({.img_size = {config.backbone.image_size(), config.backbone.image_size()},
                    .patch_size = {config.backbone.patch_size, config.backbone.patch_size},
                    .in_chans = config.backbone.in_chans,
                    .embed_dim = config.backbone.dim,
                    .dynamic_img_size = true},
                   params.child("patch_embed")),
      pos_embed_(params.get("pos_embed", {1, 1 + config.backbone.grid * config.backbone.grid, config.backbone.dim},
                            nn::init::zeros())),
      blocks_(params.child("blocks").path()),
      residuals_(params.child("residuals").path()) {
  const SamEncoderConfig& vit = config.backbone;
  for (size_t i = 0; i < vit.blocks.size(); ++i)
    blocks_.emplace_back(vit, vit.blocks[i], params.child("blocks").child(static_cast<int64_t>(i)));
  for (size_t i = 0; i < config.residual_blocks.size(); ++i)
    residuals_.emplace_back(vit.dim, params.child("residuals").child(static_cast<int64_t>(i)));
}

Tensor VitDetBackbone::forward(const Tensor& images) const {
  const SamEncoderConfig& vit = config_.backbone;
  const auto [rows, columns] = patch_embed_.grid_of(images.size(2), images.size(3));
  const Tensor positions =
      nn::resample_positions(pos_embed_, 1, {vit.grid, vit.grid}, {rows, columns}, {.antialias = false});
  const Tensor patches = patch_embed_.forward(images);  // [B, h·w, D]
  Tensor x = ops::add(patches, positions.narrow(1, 1, rows * columns)).view({images.size(0), rows, columns, vit.dim});
  for (size_t i = 0; i < blocks_.size(); ++i) {
    x = blocks_[i].forward(x);
    const auto residual = std::ranges::find(config_.residual_blocks, static_cast<int64_t>(i));
    if (residual != config_.residual_blocks.end())
      x = residuals_[static_cast<size_t>(residual - config_.residual_blocks.begin())].forward(x);
  }
  return nn::traced(*this, x);
}

void VitDetBackbone::visit(nn::Visitor& visitor) {
  visitor.parameter("pos_embed", pos_embed_);
  visitor.child("patch_embed", static_cast<nn::Module&>(patch_embed_));
  visitor.child("blocks", static_cast<nn::Module&>(blocks_));
  if (residuals_.size() > 0) visitor.child("residuals", static_cast<nn::Module&>(residuals_));
}

VitMatteConvolution::VitMatteConvolution(int64_t in, int64_t out, int64_t stride, double eps, const ParamSource& params)
    : Module(params.path()),
      conv_(folded({.in_chans = in, .out_chans = out, .kernel = 3, .stride = stride}, params.child("conv"),
                   params.child("batch_norm"), false, eps)) {}

Tensor VitMatteConvolution::forward(const Tensor& x) const {
  return nn::traced(*this, conv_.forward(x, Activation::relu));
}

void VitMatteConvolution::visit(nn::Visitor& visitor) { visitor.child("conv", static_cast<nn::Module&>(conv_)); }

VitMatteDecoder::VitMatteDecoder(const VitMatteConfig& config, const ParamSource& params)
    : Module(params.path()),
      stream_(params.child("convstream").child("convs").path()),
      fusion_(params.child("fusion_blocks").path()),
      conv1_(folded({.in_chans = config.fusion_dims.back(), .out_chans = 16, .kernel = 3},
                    params.child("matting_head").child("matting_convs").child(0),
                    params.child("matting_head").child("matting_convs").child(1), true)),
      conv2_({.in_chans = 16, .out_chans = 1}, params.child("matting_head").child("matting_convs").child(3)) {
  std::vector<int64_t> stream{config.backbone.in_chans};
  stream.insert(stream.end(), config.stream_dims.begin(), config.stream_dims.end());
  const ParamSource convs = params.child("convstream").child("convs"), fusions = params.child("fusion_blocks");
  for (size_t i = 1; i < stream.size(); ++i)
    stream_.emplace_back(stream[i - 1], stream[i], 2, config.batch_norm_eps, convs.child(static_cast<int64_t>(i - 1)));
  int64_t in = config.backbone.dim;
  for (size_t i = 0; i < config.fusion_dims.size(); ++i) {
    const int64_t out = config.fusion_dims[i];
    fusion_.emplace_back(in + stream[stream.size() - 1 - i], out, 1, config.batch_norm_eps,
                         fusions.child(static_cast<int64_t>(i)));
    in = out;
  }
}

Tensor VitMatteDecoder::forward(const Tensor& features, const Tensor& input) const {
  std::vector<Tensor> details{input};
  for (size_t i = 0; i < stream_.size(); ++i) details.push_back(stream_[i].forward(details.back()));
  Tensor x = features;
  for (size_t i = 0; i < fusion_.size(); ++i, details.pop_back()) {
    const Tensor large = ops::resize_map(x, 2 * x.size(1), 2 * x.size(2));
    x = fusion_[i].forward(ops::cat({details.back(), large}, 3));
  }
  return nn::traced(*this, conv2_.forward(conv1_.forward(x, Activation::relu)).squeeze(3));
}

void VitMatteDecoder::visit(nn::Visitor& visitor) {
  visitor.child("convstream.convs", static_cast<nn::Module&>(stream_));
  visitor.child("fusion_blocks", static_cast<nn::Module&>(fusion_));
  visitor.child("matting_head.matting_convs.0", static_cast<nn::Module&>(conv1_));
  visitor.child("matting_head.matting_convs.3", static_cast<nn::Module&>(conv2_));
}

VitMatte::VitMatte(const VitMatteConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      backbone_(config, params.child("backbone")),
      decoder_(config, params.child("decoder")) {}

Tensor VitMatte::forward(const Tensor& images) const {
  return sigmoid(decoder_.forward(backbone_.forward(images), ops::contiguous(images.permute({0, 2, 3, 1}))));
}

void VitMatte::visit(nn::Visitor& visitor) {
  visitor.child("backbone", static_cast<nn::Module&>(backbone_));
  visitor.child("decoder", static_cast<nn::Module&>(decoder_));
}

bool is_vitmatte(const ModelFiles& files) { return files.first.has("decoder.matting_head.matting_convs.0.weight"); }

VitMatteFiles open_vitmatte(const ModelFiles& files) {
  auto checkpoint = files.checkpoint();
  if (!is_present(files.config))
    throw Error(files.weights.front().string(), "a config.json of transformers beside it", "none");
  const PreprocessorFile preprocessor = preprocessor_file(files.config.parent_path());
  const std::string text = read_regular_text_file(files.config);
  VitMatteConfig config = read_vitmatte_config(text, files.config.string(), preprocessor.text, preprocessor.path);
  weights::KeyMap key_map = weights::KeyMap::parse(vitmatte_keys(config), "key map");
  return {std::move(checkpoint), std::move(key_map), std::move(config), text, preprocessor.text};
}

VitMatte load_vitmatte(const VitMatteFiles& files) { return load_configured<VitMatte>(files); }

}  // namespace vitrail::models
