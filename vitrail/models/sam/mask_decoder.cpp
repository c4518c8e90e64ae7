// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/mask_decoder.h"

#include "vitrail/models/dense/sigmoid_internal.h"
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
  const int64_t dim = config.decoder.dim;
  if (config.decoder.high_quality) hq_head_.emplace(config, params);
  if (config.decoder.object_score) {
    object_token_ = params.get("obj_score_token.weight", {1, dim}, nn::init::normal(1));
    object_head_.emplace(dim, dim, 1, params.child("pred_obj_score_head"));
  }
  if (!config.decoder.reads_fine_maps) return;
  fine_conv_.emplace(nn::Conv2dConfig{.in_chans = dim, .out_chans = config.decoder.upscale_dims[1]},
                     params.child("conv_s0"));
  middle_conv_.emplace(nn::Conv2dConfig{.in_chans = dim, .out_chans = config.decoder.upscale_dims[0]},
                       params.child("conv_s1"));
}

std::vector<SamFeature> SamMaskDecoder::features() const {
  const int64_t side = config_.mask_size(), half = side / 2;
  const auto& [middle, fine] = config_.decoder.upscale_dims;
  if (hq_head_) return {{"hq_features", {side, side, fine}}};
  if (!fine_conv_) return {};
  return {{"high_res_features_0", {side, side, fine}}, {"high_res_features_1", {half, half, middle}}};
}

std::vector<Tensor> SamMaskDecoder::image_features(const SamMaps& maps) const {
  if (hq_head_) return {hq_head_->features(maps.embedding, maps.further.at(0))};
  if (!fine_conv_) return {};
  return {fine_conv_->forward(maps.further.at(0)), middle_conv_->forward(maps.further.at(1))};
}

Tensor SamMaskDecoder::tokens(const Tensor& prompts) const {
  std::vector<Tensor> parts;
  if (object_token_.defined()) parts.push_back(repeated(object_token_, prompts.size(0)));
  parts.push_back(repeated(iou_token_, prompts.size(0)));
  parts.push_back(repeated(mask_tokens_, prompts.size(0)));
  if (hq_head_) parts.push_back(repeated(hq_head_->token(), prompts.size(0)));
  if (prompts.size(1) > 0) parts.push_back(prompts);
  return ops::cat(parts, 1);
}

SamMasks SamMaskDecoder::forward(const Tensor& image, const Tensor& positions, const Tensor& tokens,
                                 const std::vector<Tensor>& maps, const Tensor& projections) const {
  const int64_t batch = tokens.size(0), rows = image.size(1), columns = image.size(2), dim = image.size(3);
  const int64_t count = config_.decoder.mask_tokens;
  SamImageProjections known;
  if (projections.defined())
    known = {projections.narrow(0, 0, 1), projections.narrow(0, 1, 1), projections.narrow(0, 2, 1)};
  const SamStreams result =
      transformer_.forward(tokens, image.view({image.size(0), rows * columns, dim}),
                           positions.view({1, rows * columns, dim}), projections.defined() ? &known : nullptr);
  const int64_t iou_at = object_head_ ? 1 : 0;
  const auto token = [&](int64_t at) { return ops::contiguous(result.tokens.narrow(1, at, 1)); };
  std::vector<Tensor> weights;  // [B, 1, C / 8] for each mask
  for (int64_t i = 0; i < count; ++i) weights.push_back(hypernetworks_[i].forward(token(iou_at + 1 + i)));
  const std::vector<Tensor> fine_maps = fine_conv_ ? std::vector{maps.at(1), maps.at(0)} : std::vector<Tensor>();
  const Tensor cells =
      upscaling_.forward(result.image.view({batch, rows, columns, dim}), kernels::Activation::gelu, fine_maps);
  const Tensor flat = cells.view({batch, cells.size(1) * cells.size(2), cells.size(3)});
  Tensor logits = ops::matmul(ops::cat(weights, 1), flat.transpose(1, 2));
  if (hq_head_) logits = ops::add(logits, hq_head_->mask(token(iou_at + 1 + count), cells, maps.at(0)));
  Tensor iou = iou_head_.forward(token(iou_at)).view({batch, count});
  if (config_.decoder.iou_sigmoid) iou = sigmoid(iou);
  return {logits.view({batch, count, cells.size(1), cells.size(2)}), iou,
          object_head_ ? object_head_->forward(token(0)).view({batch, 1}) : Tensor()};
}

Tensor SamMaskDecoder::project(const Tensor& image, const Tensor& positions) const {
  const Shape cells{1, image.size(1) * image.size(2), image.size(3)};
  const SamImageProjections result = transformer_.project(image.view(cells), positions.view(cells));
  return ops::cat({result.query, result.key, result.value}, 0);
}

void SamMaskDecoder::visit(nn::Visitor& visitor) {
  visitor.child("transformer", static_cast<nn::Module&>(transformer_));
  visitor.parameter("obj_score_token.weight", object_token_);
  visitor.parameter("iou_token.weight", iou_token_);
  visitor.parameter("mask_tokens.weight", mask_tokens_);
  visitor.child("output_upscaling", static_cast<nn::Module&>(upscaling_));
  visitor.child("output_hypernetworks_mlps", static_cast<nn::Module&>(hypernetworks_));
  visitor.child("iou_prediction_head", static_cast<nn::Module&>(iou_head_));
  if (object_head_) visitor.child("pred_obj_score_head", static_cast<nn::Module&>(*object_head_));
  if (fine_conv_) visitor.child("conv_s0", static_cast<nn::Module&>(*fine_conv_));
  if (middle_conv_) visitor.child("conv_s1", static_cast<nn::Module&>(*middle_conv_));
  if (hq_head_) hq_head_->visit(visitor);
}

}  // namespace vitrail::models
