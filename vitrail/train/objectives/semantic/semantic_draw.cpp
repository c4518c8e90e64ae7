// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/semantic/semantic_draw_internal.h"

#include <algorithm>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/data/augment/random_draws_internal.h"
#include "vitrail/data/augment/random_resized_crop_internal.h"
#include "vitrail/image/crop_internal.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/resize_internal.h"

namespace vitrail::train {
namespace {

data::AugmentOptions colors_of(const data::AugmentOptions& augment) {
  data::AugmentOptions colors;
  colors.color_jitter = augment.color_jitter;
  return colors;
}

}  // namespace

MapSamples::MapSamples(std::shared_ptr<const MapDataset> dataset, int64_t classes, int64_t ignored,
                       image::ColorMode mode, const DataRecipe& recipe)
    : dataset_(std::move(dataset)),
      classes_(classes),
      ignored_(ignored),
      mode_(mode),
      exif_(recipe.exif),
      cache_(dataset_->size(), recipe) {}

MapSample MapSamples::read(int64_t image) const {
  MapSample sample{image::read_image(dataset_->path(image), {.mode = mode_, .apply_exif = exif_})};
  sample.labels = image::make_image(sample.image.width, sample.image.height, 1);
  const std::vector<int32_t> labels = dataset_->labels(image, sample.image.width, sample.image.height);
  const auto bad = std::ranges::find_if(
      labels, [&](int32_t label) { return (label < 0 || label >= classes_) && label != ignored_; });
  if (bad != labels.end()) {
    throw Error(dataset_->labels_path(image).string(),
                str("labels from 0 to ", classes_ - 1, ", or ", ignored_, " for pixels without a class"), str(*bad));
  }
  std::ranges::transform(labels, sample.labels.pixels.begin(),
                         [](int32_t label) { return static_cast<uint8_t>(label); });
  return sample;
}

std::shared_ptr<const MapSample> MapSamples::get(int64_t image) const {
  return cache_.get(image, [&] { return read(image); });
}

MapAugmentation::MapAugmentation(const Recipe& recipe, const image::EvalTransform& transform)
    : crop_(recipe.augment.random_resized_crop),
      flip_(recipe.augment.flip == data::Flip::random),
      transform_(transform),
      colors_(colors_of(recipe.augment), transform) {}

void MapAugmentation::apply(const MapSample& sample, const data::AugmentKey& key, float* image, int64_t* labels) const {
  const uint64_t epoch = random_key("map", key.seed, static_cast<uint64_t>(key.epoch));
  RandomStream random(epoch, static_cast<uint64_t>(key.sample));
  image::ResizeOptions part;
  image::Filter filter = transform_.interpolation;
  if (crop_) {
    part.crop = data::resized_crop_window(*crop_, sample.image.width, sample.image.height, random);
    filter = data::random_choice(random, crop_->interpolation);
  }
  const auto [height, width] = transform_.size;
  image::Image seen = image::resize(sample.image, width, height, filter, part);
  image::Image map = image::resize(sample.labels, width, height, image::Filter::nearest, part);
  if (flip_ && data::random_coin(random)) {
    image::mirror(seen);
    image::mirror(map);
  }
  colors_.apply_into(seen, key, image);
  std::ranges::copy(map.pixels, labels);
}

}  // namespace vitrail::train
