// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/mask_decoder.h"

#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

constexpr double kNormEps = 1e-6;
constexpr int64_t kMlpDepth = 3;

// [n, C] for each sample of the batch, [B, n, C].
Tensor repeated(const Tensor& tokens, int64_t batch) {
  return tokens.unsqueeze(0).expand({batch, tokens.size(0), tokens.size(1)});
}

}  // namespace

SamMlp::SamMlp(int64_t in, int64_t hidden, int64_t out, const ParamSource& params)
    : Module(params.path()), layers_(params.child("layers").path()) {
  for (int64_t i = 0; i < kMlpDepth; ++i) {
    layers_.emplace_back(i == 0 ? in : hidden, i + 1 == kMlpDepth ? out : hidden, true,
                         params.child("layers").child(i));
  }
}

Tensor SamMlp::forward(const Tensor& x) const {
  Tensor y = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    y = layers_[i].forward(y, i + 1 < layers_.size() ? kernels::Activation::relu : kernels::Activation::none);
  }
  return traced(*this, y);
}

void SamMlp::visit(nn::Visitor& visitor) { visitor.child("layers", static_cast<nn::Module&>(layers_)); }

SamMaskDecoder::SamMaskDecoder(const SamConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      transformer_(config.decoder, params.child("transformer")),
      iou_token_(params.get("iou_token.weight", {1, config.decoder.dim}, nn::init::normal(1))),
      mask_tokens_(
          params.get("mask_tokens.weight", {config.decoder.mask_tokens, config.decoder.dim}, nn::init::normal(1))),
      upscale1_({.in_chans = config.decoder.dim, .out_chans = config.decoder.upscale_dims[0], .kernel = 2},
                params.child("output_upscaling.0")),
      upscale_norm_(config.decoder.upscale_dims[0], kNormEps, params.child("output_upscaling.1")),
      upscale2_({.in_chans = config.decoder.upscale_dims[0], .out_chans = config.decoder.upscale_dims[1], .kernel = 2},
                params.child("output_upscaling.3")),
      hypernetworks_(params.child("output_hypernetworks_mlps").path()),
      iou_head_(config.decoder.dim, config.decoder.iou_hidden, config.decoder.mask_tokens,
                params.child("iou_prediction_head")) {
  for (int64_t i = 0; i < config.decoder.mask_tokens; ++i) {
    hypernetworks_.emplace_back(config.decoder.dim, config.decoder.dim, config.decoder.upscale_dims[1],
                                params.child("output_hypernetworks_mlps").child(i));
  }
}

Tensor SamMaskDecoder::upscaled(const Tensor& image) const {
  using kernels::Activation;
  const Tensor x = ops::activation(upscale_norm_.forward(upscale1_.forward(image)), Activation::gelu);
  return ops::activation(upscale2_.forward(x), Activation::gelu);
}

Tensor SamMaskDecoder::tokens(const Tensor& prompts) const {
  std::vector<Tensor> parts{repeated(iou_token_, prompts.size(0)), repeated(mask_tokens_, prompts.size(0))};
  if (prompts.size(1) > 0) parts.push_back(prompts);
  return ops::cat(parts, 1);
}

SamMasks SamMaskDecoder::forward(const Tensor& image, const Tensor& positions, const Tensor& tokens) const {
  const int64_t batch = tokens.size(0), rows = image.size(1), columns = image.size(2), dim = image.size(3);
  const int64_t count = config_.decoder.mask_tokens;
  const SamStreams result = transformer_.forward(tokens, image.view({image.size(0), rows * columns, dim}),
                                                 positions.view({1, rows * columns, dim}));
  std::vector<Tensor> weights;  // [B, 1, C / 8] for each mask
  for (int64_t i = 0; i < count; ++i) {
    weights.push_back(hypernetworks_[i].forward(ops::contiguous(result.tokens.narrow(1, 1 + i, 1))));
  }
  const Tensor cells = upscaled(result.image.view({batch, rows, columns, dim}));
  const Tensor flat = cells.view({batch, cells.size(1) * cells.size(2), cells.size(3)});
  const Tensor logits = ops::matmul(ops::cat(weights, 1), flat.transpose(1, 2));
  const Tensor iou = iou_head_.forward(ops::contiguous(result.tokens.narrow(1, 0, 1)));
  return {logits.view({batch, count, cells.size(1), cells.size(2)}), iou.view({batch, count})};
}

void SamMaskDecoder::visit(nn::Visitor& visitor) {
  visitor.child("transformer", static_cast<nn::Module&>(transformer_));
  visitor.parameter("iou_token.weight", iou_token_);
  visitor.parameter("mask_tokens.weight", mask_tokens_);
  visitor.child("output_upscaling.0", static_cast<nn::Module&>(upscale1_));
  visitor.child("output_upscaling.1", static_cast<nn::Module&>(upscale_norm_));
  visitor.child("output_upscaling.3", static_cast<nn::Module&>(upscale2_));
  visitor.child("output_hypernetworks_mlps", static_cast<nn::Module&>(hypernetworks_));
  visitor.child("iou_prediction_head", static_cast<nn::Module&>(iou_head_));
}

}  // namespace vitrail::models
