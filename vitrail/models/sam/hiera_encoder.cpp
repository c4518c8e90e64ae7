// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/hiera_encoder.h"

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layout.h"

namespace vitrail::models {
namespace {

// Each cell becomes 2×2 cells: nearest neighbours.
Tensor enlarged_twice(const Tensor& x) {
  const int64_t batch = x.size(0), rows = x.size(1), columns = x.size(2), dim = x.size(3);
  const Tensor wide = ops::contiguous(x.unsqueeze(3).expand({batch, rows, columns, 2, dim}));
  const Tensor tall = wide.view({batch, rows, 1, 2 * columns * dim}).expand({batch, rows, 2, 2 * columns * dim});
  return ops::contiguous(tall).view({batch, 2 * rows, 2 * columns, dim});
}

}  // namespace

SamFeaturePyramid::SamFeaturePyramid(const SamEncoderConfig& config, const ParamSource& params)
    : Module(params.path()), convs_(params.child("convs").path()) {
  const std::vector<HieraStage>& stages = config.hiera->stages;
  for (size_t i = 0; i < stages.size(); ++i) {
    convs_.emplace_back(stages[stages.size() - 1 - i].dim, config.out_chans,
                        params.child("convs").child(static_cast<int64_t>(i)));
  }
}

SamMaps SamFeaturePyramid::forward(const std::vector<Tensor>& maps) const {
  const auto lateral = [&](size_t level) { return convs_[maps.size() - 1 - level].forward(maps[level]); };
  const Tensor embedding = ops::add(lateral(2), enlarged_twice(lateral(3)));
  return {traced(*this, embedding), {lateral(0), lateral(1)}};
}

void SamFeaturePyramid::visit(nn::Visitor& visitor) { visitor.child("convs", static_cast<nn::Module&>(convs_)); }

SamHieraEncoder::SamHieraEncoder(const SamEncoderConfig& config, const ParamSource& params)
    : SamEncoder(params.path()), trunk_(*config.hiera, params.child("trunk")), neck_(config, params.child("neck")) {}

SamMaps SamHieraEncoder::maps(const Tensor& images) const {
  SamMaps maps = neck_.forward(trunk_.forward(images));
  maps.embedding = traced(*this, maps.embedding);
  return maps;
}

std::vector<std::string> SamHieraEncoder::outer_layers() const {
  std::vector<std::string> layers{"trunk.patch_embed.proj"};
  for (size_t i = 0; i < trunk_.config().stages.size(); ++i) layers.push_back(str("neck.convs.", i, ".conv"));
  return layers;
}

void SamHieraEncoder::visit(nn::Visitor& visitor) {
  visitor.child("trunk", static_cast<nn::Module&>(trunk_));
  visitor.child("neck", static_cast<nn::Module&>(neck_));
}

}  // namespace vitrail::models
