// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/tiny_vit.h"

#include <cmath>
#include <cstdlib>

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/ops/window.h"

namespace vitrail::models {
namespace {

using kernels::Activation;

constexpr double kTinyVitNormEps = 1e-5;

// weight [out, …] · scale and mean → the bias, where scale = γ / √(variance + ε).
Tensor fold_batch_norm(const Tensor& weight, const ParamSource& norm) {
  const Shape shape{weight.size(0)};
  const Tensor gamma = norm.get("weight", shape, nn::init::ones()), beta = norm.get("bias", shape, nn::init::zeros());
  const Tensor mean = norm.get("running_mean", shape, nn::init::zeros());
  const Tensor variance = norm.get("running_var", shape, nn::init::ones());
  for (const Tensor& tensor : {weight, gamma, beta, mean, variance}) {
    if (tensor.is_meta()) return beta;  // without values, or missing in the file, which loading reports
  }
  Tensor bias = Tensor::empty(shape);
  const int64_t taps = weight.numel() / weight.size(0);
  for (int64_t c = 0; c < weight.size(0); ++c) {
    const double scale = gamma.data<float>()[c] / std::sqrt(variance.data<float>()[c] + kTinyVitNormEps);
    float* const row = weight.data<float>() + c * taps;
    for (int64_t i = 0; i < taps; ++i) row[i] = static_cast<float>(row[i] * scale);
    bias.data<float>()[c] = static_cast<float>(beta.data<float>()[c] - mean.data<float>()[c] * scale);
  }
  return bias;
}

}  // namespace

SamConvNorm::SamConvNorm(const SamConvNormConfig& config, const ParamSource& params)
    : Module(params.path()), config_(config) {
  const int64_t in = config.depthwise ? 1 : config.in_chans;
  weight_ = params.get("c.weight", {config.out_chans, in, config.kernel, config.kernel},
                       nn::init::torch_default(in * config.kernel * config.kernel));
  if (params.has("bn.weight") || !params.has("c.bias")) {
    if (!weight_.is_meta()) weight_ = weight_.to(DType::f32).clone();  // the file's memory stays as it is
    bias_ = fold_batch_norm(weight_, params.child("bn"));
  } else {
    bias_ = params.get("c.bias", {config.out_chans}, nn::init::zeros());
  }
}

Tensor SamConvNorm::forward(const Tensor& x, Activation activation) const {
  if (config_.depthwise) {
    const Tensor y = ops::depthwise_conv_3x3(x, weight_.view({config_.out_chans, 3, 3}), bias_, config_.stride);
    return traced(*this, activation == Activation::none ? y : ops::activation(y, activation));
  }
  const Tensor patches = config_.kernel == 1 ? x : ops::unfold_3x3(x, config_.stride);
  return traced(*this, ops::linear(patches, weight_.view({config_.out_chans, -1}), bias_, activation));
}

void SamConvNorm::visit(nn::Visitor& visitor) {
  visitor.parameter("c.weight", weight_);
  visitor.parameter("c.bias", bias_);
}

SamTinyAttention::SamTinyAttention(const SamTinyStage& stage, const ParamSource& params)
    : Module(params.path()),
      num_heads_(stage.num_heads),
      head_dim_(stage.dim / stage.num_heads),
      window_(stage.window),
      norm_(stage.dim, kTinyVitNormEps, params.child("norm")),
      qkv_(stage.dim, 3 * stage.dim, true, params.child("qkv")),
      proj_(stage.dim, stage.dim, true, params.child("proj")),
      biases_(params.get("attention_biases", {stage.num_heads, stage.window * stage.window}, nn::init::zeros())) {}

Tensor SamTinyAttention::bias() const {
  const int64_t cells = window_ * window_;
  Tensor distances = Tensor::empty({cells, cells}, DType::i64);
  for (int64_t i = 0; i < cells; ++i) {
    for (int64_t j = 0; j < cells; ++j) {
      const int64_t dy = std::abs(i / window_ - j / window_), dx = std::abs(i % window_ - j % window_);
      distances.data<int64_t>()[i * cells + j] = dy * window_ + dx;
    }
  }
  const Tensor bias = ops::embedding(distances, ops::contiguous(biases_.transpose(0, 1)));  // [N, N, H]
  return ops::contiguous(bias.permute({2, 0, 1})).unsqueeze(0);
}

Tensor SamTinyAttention::forward(const Tensor& x) const {
  const int64_t height = x.size(1), width = x.size(2), dim = num_heads_ * head_dim_;
  const Tensor windows = ops::window_partition(norm_.forward(x), window_, norm_.parameter("bias"));
  const Tensor qkv = qkv_.forward(windows).view({windows.size(0), windows.size(1), num_heads_, 3, head_dim_});
  const Tensor heads = qkv.permute({3, 0, 2, 1, 4});  // [3, B, H, N, d]
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim_));
  const Tensor attended = ops::attention(heads.select(0, 0), heads.select(0, 1), heads.select(0, 2), scale, bias()).out;
  const Tensor map = ops::window_unpartition(proj_.forward(attended), window_, height, width);
  return traced(*this, map.view({x.size(0), height, width, dim}));
}

void SamTinyAttention::visit(nn::Visitor& visitor) {
  visitor.parameter("attention_biases", biases_);
  visitor.child("norm", static_cast<nn::Module&>(norm_));
  visitor.child("qkv", static_cast<nn::Module&>(qkv_));
  visitor.child("proj", static_cast<nn::Module&>(proj_));
}

SamTinyBlock::SamTinyBlock(const SamTinyStage& stage, const ParamSource& params)
    : Module(params.path()),
      attn_(stage, params.child("attn")),
      norm_(stage.dim, kTinyVitNormEps, params.child("mlp.norm")),
      fc1_(stage.dim, stage.hidden, true, params.child("mlp.fc1")),
      fc2_(stage.hidden, stage.dim, true, params.child("mlp.fc2")),
      local_conv_({.in_chans = stage.dim, .out_chans = stage.dim, .kernel = 3, .depthwise = true},
                  params.child("local_conv")) {}

Tensor SamTinyBlock::forward(const Tensor& x) const {
  const Tensor local = local_conv_.forward(ops::residual_add(x, attn_.forward(x)));
  const Tensor hidden = fc1_.forward(norm_.forward(local), Activation::gelu);
  return traced(*this, ops::residual_add(local, fc2_.forward(hidden)));
}

void SamTinyBlock::visit(nn::Visitor& visitor) {
  visitor.child("attn", static_cast<nn::Module&>(attn_));
  visitor.child("mlp.norm", static_cast<nn::Module&>(norm_));
  visitor.child("mlp.fc1", static_cast<nn::Module&>(fc1_));
  visitor.child("mlp.fc2", static_cast<nn::Module&>(fc2_));
  visitor.child("local_conv", static_cast<nn::Module&>(local_conv_));
}

SamTinyConvolutions::SamTinyConvolutions(int64_t in, int64_t hidden, int64_t out, int64_t stride, bool residual,
                                         const ParamSource& params)
    : Module(params.path()),
      residual_(residual),
      conv1_({.in_chans = in, .out_chans = hidden}, params.child("conv1")),
      conv2_({.in_chans = hidden, .out_chans = hidden, .kernel = 3, .stride = stride, .depthwise = true},
             params.child("conv2")),
      conv3_({.in_chans = hidden, .out_chans = out}, params.child("conv3")) {}

Tensor SamTinyConvolutions::forward(const Tensor& x) const {
  const Tensor y = conv3_.forward(conv2_.forward(conv1_.forward(x, Activation::gelu), Activation::gelu));
  return traced(*this, residual_ ? ops::activation(ops::residual_add(x, y), Activation::gelu) : y);
}

void SamTinyConvolutions::visit(nn::Visitor& visitor) {
  visitor.child("conv1", static_cast<nn::Module&>(conv1_));
  visitor.child("conv2", static_cast<nn::Module&>(conv2_));
  visitor.child("conv3", static_cast<nn::Module&>(conv3_));
}

SamTinyLayer::SamTinyLayer(const SamTinyStage& stage, bool convolutions, const ParamSource& params)
    : Module(params.path()), convolutions_(params.child("blocks").path()), blocks_(params.child("blocks").path()) {
  for (int64_t i = 0; i < stage.depth; ++i) {
    const ParamSource block = params.child("blocks").child(i);
    if (convolutions) {
      convolutions_.emplace_back(stage.dim, stage.hidden, stage.dim, 1, true, block);
    } else {
      blocks_.emplace_back(stage, block);
    }
  }
  if (stage.out_dim > 0) {
    downsample_.emplace(stage.dim, stage.out_dim, stage.out_dim, stage.stride, false, params.child("downsample"));
  }
}

Tensor SamTinyLayer::forward(const Tensor& x) const {
  Tensor y = x;
  for (const SamTinyConvolutions& block : convolutions_) y = block.forward(y);
  for (const SamTinyBlock& block : blocks_) y = block.forward(y);
  return traced(*this, downsample_ ? downsample_->forward(y) : y);
}

void SamTinyLayer::visit(nn::Visitor& visitor) {
  visitor.child("blocks", static_cast<nn::Module&>(convolutions_.size() > 0 ? static_cast<nn::Module&>(convolutions_)
                                                                            : static_cast<nn::Module&>(blocks_)));
  if (downsample_) visitor.child("downsample", static_cast<nn::Module&>(*downsample_));
}

SamTinyEncoder::SamTinyEncoder(const SamEncoderConfig& config, const ParamSource& params)
    : SamSingleScaleEncoder(config.stages.back().dim, config.out_chans, params),
      stem1_({.in_chans = config.in_chans, .out_chans = config.stem, .kernel = 3, .stride = 2},
             params.child("patch_embed.seq.0")),
      stem2_({.in_chans = config.stem, .out_chans = config.stages[0].dim, .kernel = 3, .stride = 2},
             params.child("patch_embed.seq.2")),
      layers_(params.child("layers").path()) {
  for (size_t i = 0; i < config.stages.size(); ++i) {
    layers_.emplace_back(config.stages[i], i == 0, params.child("layers").child(static_cast<int64_t>(i)));
  }
}

SamTrunk SamTinyEncoder::trunk_outputs(const Tensor& images) const {
  const Tensor map = ops::contiguous(images.permute({0, 2, 3, 1}));
  Tensor x = stem2_.forward(stem1_.forward(map, Activation::gelu)), intermediate;
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i].forward(x);
    if (i == 1) intermediate = x;
  }
  return {x, intermediate};
}

std::vector<std::string> SamTinyEncoder::outer_layers() const {
  return {"patch_embed.seq.0.c", "patch_embed.seq.2.c", "neck.0", "neck.2"};
}

void SamTinyEncoder::visit(nn::Visitor& visitor) {
  visitor.child("patch_embed.seq.0", static_cast<nn::Module&>(stem1_));
  visitor.child("patch_embed.seq.2", static_cast<nn::Module&>(stem2_));
  visitor.child("layers", static_cast<nn::Module&>(layers_));
  SamSingleScaleEncoder::visit(visitor);
}

}  // namespace vitrail::models
