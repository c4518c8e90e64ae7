// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/mask_decoder.h"

#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

// [n, C] for each sample of the batch, [B, n, C].
Tensor repeated(const Tensor& tokens, int64_t batch) {
  return tokens.unsqueeze(0).expand({batch, tokens.size(0), tokens.size(1)});
}

}  // namespace

SamMaskDecoder::SamMaskDecoder(const SamConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      transformer_(config.decoder, params.child("transformer")),
      iou_token_(params.get("iou_token.weight", {1, config.decoder.dim}, nn::init::normal(1))),
      mask_tokens_(
          params.get("mask_tokens.weight", {config.decoder.mask_tokens, config.decoder.dim}, nn::init::normal(1))),
      upscaling_(config.decoder.dim, config.decoder.upscale_dims[0], config.decoder.upscale_dims[1],
                 params.child("output_upscaling")),
      hypernetworks_(params.child("output_hypernetworks_mlps").path()),
      iou_head_(config.decoder.dim, config.decoder.iou_hidden, config.decoder.mask_tokens,
                params.child("iou_prediction_head")) {
  for (int64_t i = 0; i < config.decoder.mask_tokens; ++i) {
    hypernetworks_.emplace_back(config.decoder.dim, config.decoder.dim, config.decoder.upscale_dims[1],
                                params.child("output_hypernetworks_mlps").child(i));
  }
  if (config.decoder.high_quality) hq_head_.emplace(config, params);
}

Tensor SamMaskDecoder::tokens(const Tensor& prompts) const {
  std::vector<Tensor> parts{repeated(iou_token_, prompts.size(0)), repeated(mask_tokens_, prompts.size(0))};
  if (hq_head_) parts.push_back(repeated(hq_head_->token(), prompts.size(0)));
  if (prompts.size(1) > 0) parts.push_back(prompts);
  return ops::cat(parts, 1);
}

SamMasks SamMaskDecoder::forward(const Tensor& image, const Tensor& positions, const Tensor& tokens,
                                 const Tensor& hq_features, const Tensor& projections) const {
  const int64_t batch = tokens.size(0), rows = image.size(1), columns = image.size(2), dim = image.size(3);
  const int64_t count = config_.decoder.mask_tokens;
  SamImageProjections known;
  if (projections.defined())
    known = {projections.narrow(0, 0, 1), projections.narrow(0, 1, 1), projections.narrow(0, 2, 1)};
  const SamStreams result =
      transformer_.forward(tokens, image.view({image.size(0), rows * columns, dim}),
                           positions.view({1, rows * columns, dim}), projections.defined() ? &known : nullptr);
  std::vector<Tensor> weights;  // [B, 1, C / 8] for each mask
  for (int64_t i = 0; i < count; ++i) {
    weights.push_back(hypernetworks_[i].forward(ops::contiguous(result.tokens.narrow(1, 1 + i, 1))));
  }
  const Tensor cells = upscaling_.forward(result.image.view({batch, rows, columns, dim}), kernels::Activation::gelu);
  const Tensor flat = cells.view({batch, cells.size(1) * cells.size(2), cells.size(3)});
  Tensor logits = ops::matmul(ops::cat(weights, 1), flat.transpose(1, 2));
  if (hq_head_) {
    const Tensor token = ops::contiguous(result.tokens.narrow(1, 1 + count, 1));
    logits = ops::add(logits, hq_head_->mask(token, cells, hq_features));
  }
  const Tensor iou = iou_head_.forward(ops::contiguous(result.tokens.narrow(1, 0, 1)));
  return {logits.view({batch, count, cells.size(1), cells.size(2)}), iou.view({batch, count})};
}

Tensor SamMaskDecoder::project(const Tensor& image, const Tensor& positions) const {
  const Shape cells{1, image.size(1) * image.size(2), image.size(3)};
  const SamImageProjections result = transformer_.project(image.view(cells), positions.view(cells));
  return ops::cat({result.query, result.key, result.value}, 0);
}

void SamMaskDecoder::visit(nn::Visitor& visitor) {
  visitor.child("transformer", static_cast<nn::Module&>(transformer_));
  visitor.parameter("iou_token.weight", iou_token_);
  visitor.parameter("mask_tokens.weight", mask_tokens_);
  visitor.child("output_upscaling", static_cast<nn::Module&>(upscaling_));
  visitor.child("output_hypernetworks_mlps", static_cast<nn::Module&>(hypernetworks_));
  visitor.child("iou_prediction_head", static_cast<nn::Module&>(iou_head_));
  if (hq_head_) hq_head_->visit(visitor);
}

}  // namespace vitrail::models
