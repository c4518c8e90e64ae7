// SPDX-License-Identifier: Apache-2.0
// Several views of each image.
#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/train/objectives/pretrain/pretrain_method_internal.h"

namespace vitrail::train {
namespace {

constexpr double kLocalSide = 3 / 7.0;  // 96 of 224 pixels

// In whole patches.
int64_t local_side(int64_t side, int64_t patch) {
  const double patches = kLocalSide * static_cast<double>(side) / static_cast<double>(patch);
  return std::max<int64_t>(1, std::llround(patches)) * patch;
}

}  // namespace

data::AugmentOptions strong_augmentation(double min_scale) {
  data::AugmentOptions augment;
  augment.flip = data::Flip::random;
  augment.random_resized_crop = data::RandomResizedCrop{.scale = {min_scale, 1}};
  augment.color_jitter =
      data::ColorJitter{.brightness = 0.4, .contrast = 0.4, .saturation = 0.2, .hue = 0.1, .probability = 0.8};
  augment.grayscale = 0.2;
  return augment;
}

std::vector<data::ViewGroup> multi_crop(const Recipe& recipe, int64_t patch, const data::LoaderOptions& options) {
  const PretrainRecipe& pretrain = pretrain_of(recipe);
  data::AugmentOptions augment = recipe.augment;
  augment.padded_crop.reset();
  if (!augment.random_resized_crop) augment.random_resized_crop.emplace();
  augment.random_resized_crop->scale = pretrain.global_scale;
  std::vector<data::ViewGroup> groups{
      {.count = pretrain.global_views, .size = options.transform.size, .augment = augment}};
  if (pretrain.local_views == 0) return groups;
  augment.random_resized_crop->scale = pretrain.local_scale;
  std::array<int64_t, 2> size{};
  for (size_t i = 0; i < 2; ++i)
    size[i] = pretrain.local_size > 0 ? pretrain.local_size : local_side(options.transform.size[i], patch);
  groups.push_back({.count = pretrain.local_views, .size = size, .augment = augment});
  return groups;
}

double multi_crop_cost(const PretrainRecipe& pretrain) {
  return static_cast<double>(pretrain.global_views) +
         kLocalSide * kLocalSide * static_cast<double>(pretrain.local_views);
}

Tensor features_of_views(const models::VisionTransformer& model, const data::Batch& batch) {
  constexpr int64_t kPositions = int64_t{1} << 40;  // more than a batch has
  const nn::RandomScope::State step = nn::RandomScope::current();
  std::vector<Tensor> features;
  int64_t view = 0;
  for (const Tensor& group : batch.views) {
    std::vector<int64_t> positions;
    for (; std::ssize(positions) < group.size(0); ++view) {
      for (const int64_t position : batch.positions) positions.push_back(view * kPositions + position);
    }
    const nn::RandomScope random(step.seed, step.step, positions);
    features.push_back(model.forward(group));
  }
  return features.size() == 1 ? features.front() : ops::cat(features, 0);
}

}  // namespace vitrail::train
