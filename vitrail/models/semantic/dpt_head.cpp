// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/semantic/dpt_head.h"

#include "vitrail/nn/folded_batch_norm.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/resize.h"

namespace vitrail::models {
namespace {

nn::Conv2d first_convolution(const SemanticConfig& config, const ParamSource& params) {
  const nn::Conv2dConfig shape{.in_chans = config.neck.fusion_dim, .out_chans = config.neck.fusion_dim, .kernel = 3};
  if (!config.batch_norm) return {shape, params};
  nn::FoldedBatchNorm folded(params.child("conv"), params.child("bn"), false);
  return {shape, ParamSource(folded, params.path())};
}

}  // namespace

DptSemanticHead::DptSemanticHead(const SemanticConfig& config, const ParamSource& params)
    : SemanticHeadModule(params.path()),
      neck_(config.neck, params.child("neck")),
      conv1_(first_convolution(config, params.child("conv1"))),
      conv2_({.in_chans = config.neck.fusion_dim, .out_chans = config.num_classes()}, params.child("conv2")) {}

// The classifier commutes with the interpolation, whose weights have the sum 1, and is cheaper before it.
Tensor DptSemanticHead::forward(const std::vector<Tensor>& tokens, int64_t rows, int64_t columns) const {
  const Tensor fused = neck_.forward(tokens, rows, columns);
  const Tensor logits = conv2_.forward(conv1_.forward(fused, kernels::Activation::relu));
  return nn::traced(*this, ops::resize_map(logits, 2 * fused.size(1), 2 * fused.size(2), ops::Corners::aligned));
}

void DptSemanticHead::visit(nn::Visitor& visitor) {
  visitor.child("neck", static_cast<nn::Module&>(neck_));
  visitor.child("conv1", static_cast<nn::Module&>(conv1_));
  visitor.child("conv2", static_cast<nn::Module&>(conv2_));
}

}  // namespace vitrail::models
