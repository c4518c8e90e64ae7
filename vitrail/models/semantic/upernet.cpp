// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/semantic/upernet.h"

#include "vitrail/models/semantic/patch_maps_internal.h"
#include "vitrail/nn/folded_batch_norm.h"
#include "vitrail/nn/pooling.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

using kernels::Activation;

constexpr size_t kLevels = 4;

Tensor at_size_of(const Tensor& map, const Tensor& other) {
  const int64_t height = other.size(1), width = other.size(2);
  return map.size(1) == height && map.size(2) == width ? map : ops::resize_map(map, height, width);
}

nn::ConvTranspose2d doubling(int64_t dim, const ParamSource& params) {
  return {{.in_chans = dim, .out_chans = dim, .kernel = 2}, params};
}

nn::ConvTranspose2d doubling_with_norm(int64_t dim, const ParamSource& convolution, const ParamSource& norm) {
  nn::FoldedBatchNorm folded(convolution, norm, true, 1e-5, 1);
  return doubling(dim, ParamSource(folded, convolution.path()));
}

nn::Conv2d conv_with_norm(int64_t in, int64_t out, int64_t kernel, const ParamSource& params) {
  nn::FoldedBatchNorm folded(params.child("conv"), params.child("bn"), false);
  return {{.in_chans = in, .out_chans = out, .kernel = kernel}, ParamSource(folded, params.path())};
}

}  // namespace

FeaturePyramid::FeaturePyramid(int64_t dim, const ParamSource& params)
    : Module(params.path()),
      first_(doubling_with_norm(dim, params.child("fpn1").child("0"), params.child("fpn1").child("1"))),
      second_(doubling(dim, params.child("fpn1").child("3"))),
      twice_(doubling(dim, params.child("fpn2").child("0"))) {}

std::vector<Tensor> FeaturePyramid::forward(const std::vector<Tensor>& maps) const {
  return {second_.forward(first_.forward(maps[0], Activation::gelu)), twice_.forward(maps[1]), maps[2],
          nn::max_pool_2x2(maps[3])};
}

void FeaturePyramid::visit(nn::Visitor& visitor) {
  visitor.child("fpn1.0", static_cast<nn::Module&>(first_));
  visitor.child("fpn1.3", static_cast<nn::Module&>(second_));
  visitor.child("fpn2.0", static_cast<nn::Module&>(twice_));
}

UperNetHead::UperNetHead(const SemanticConfig& config, const ParamSource& params)
    : SemanticHeadModule(params.path()),
      scales_(config.pool_scales),
      pyramid_(config.backbone.embed_dim, params),
      psp_modules_(params.child("psp_modules").path()),
      bottleneck_(conv_with_norm(config.backbone.embed_dim * (1 + static_cast<int64_t>(scales_.size())),
                                 config.backbone.embed_dim, 3, params.child("bottleneck"))),
      lateral_convs_(params.child("lateral_convs").path()),
      fpn_convs_(params.child("fpn_convs").path()),
      fpn_bottleneck_(conv_with_norm(kLevels * config.backbone.embed_dim, config.backbone.embed_dim, 3,
                                     params.child("fpn_bottleneck"))),
      classifier_({.in_chans = config.backbone.embed_dim, .out_chans = config.num_classes()},
                  params.child("classifier")) {
  const int64_t dim = config.backbone.embed_dim;
  for (size_t i = 0; i < scales_.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    psp_modules_.emplace_back(conv_with_norm(dim, dim, 1, params.child("psp_modules").child(index)));
  }
  for (int64_t i = 0; i + 1 < static_cast<int64_t>(kLevels); ++i) {
    lateral_convs_.emplace_back(conv_with_norm(dim, dim, 1, params.child("lateral_convs").child(i)));
    fpn_convs_.emplace_back(conv_with_norm(dim, dim, 3, params.child("fpn_convs").child(i)));
  }
}

// The map beside its means over cells of several sizes (Zhao et al. 2017, "Pyramid Scene Parsing Network").
Tensor UperNetHead::pyramid_pooling(const Tensor& coarsest) const {
  std::vector<Tensor> parts{coarsest};
  for (size_t i = 0; i < scales_.size(); ++i) {
    const Tensor pooled = nn::adaptive_avg_pool(coarsest, scales_[i]);
    parts.push_back(at_size_of(psp_modules_[i].forward(pooled, Activation::relu), coarsest));
  }
  return bottleneck_.forward(ops::cat(parts, 3), Activation::relu);
}

Tensor UperNetHead::forward(const std::vector<Tensor>& tokens, int64_t rows, int64_t columns) const {
  std::vector<Tensor> maps;
  for (const Tensor& each : tokens) maps.push_back(patch_map(each, rows, columns));
  const std::vector<Tensor> features = pyramid_.forward(maps);
  std::vector<Tensor> levels;
  for (size_t i = 0; i + 1 < kLevels; ++i) levels.push_back(lateral_convs_[i].forward(features[i], Activation::relu));
  levels.push_back(pyramid_pooling(features.back()));
  for (size_t i = kLevels - 1; i > 0; --i)
    levels[i - 1] = ops::residual_add(levels[i - 1], at_size_of(levels[i], levels[i - 1]));
  for (size_t i = 0; i + 1 < kLevels; ++i) levels[i] = fpn_convs_[i].forward(levels[i], Activation::relu);
  for (size_t i = 1; i < kLevels; ++i) levels[i] = at_size_of(levels[i], levels[0]);
  return nn::traced(*this, classifier_.forward(fpn_bottleneck_.forward(ops::cat(levels, 3), Activation::relu)));
}

void UperNetHead::visit(nn::Visitor& visitor) {
  pyramid_.visit(visitor);
  visitor.child("psp_modules", static_cast<nn::Module&>(psp_modules_));
  visitor.child("bottleneck", static_cast<nn::Module&>(bottleneck_));
  visitor.child("lateral_convs", static_cast<nn::Module&>(lateral_convs_));
  visitor.child("fpn_convs", static_cast<nn::Module&>(fpn_convs_));
  visitor.child("fpn_bottleneck", static_cast<nn::Module&>(fpn_bottleneck_));
  visitor.child("classifier", static_cast<nn::Module&>(classifier_));
}

}  // namespace vitrail::models
