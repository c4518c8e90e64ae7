// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/detection/detection_draw_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/data/augment/random_draws_internal.h"
#include "vitrail/data/augment/random_resized_crop_internal.h"
#include "vitrail/image/crop_internal.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/train/objectives/detection/detection_recipe_internal.h"

namespace vitrail::train {
namespace {

constexpr double kVisibleShare = 0.25;  // an object stays if so much of its box is left

data::AugmentOptions colors_alone(const data::AugmentOptions& augment) {
  data::AugmentOptions colors;
  colors.color_jitter = augment.color_jitter;
  return colors;
}

uint64_t mosaic_key(const data::AugmentKey& key) {
  return random_key("mosaic", key.seed, static_cast<uint64_t>(key.epoch));
}

// Adds an object whose corners are shares of the image's size; it is cut to the image.
void add_target(const std::array<double, 4>& corners, int64_t index, DetectionTargets& targets) {
  const auto [left, top, right, bottom] = corners;
  const double x0 = std::clamp(left, 0.0, 1.0), x1 = std::clamp(right, 0.0, 1.0);
  const double y0 = std::clamp(top, 0.0, 1.0), y1 = std::clamp(bottom, 0.0, 1.0);
  const double visible = (x1 - x0) * (y1 - y0);
  if (visible <= 0 || visible < kVisibleShare * (right - left) * (bottom - top)) return;
  targets.classes.push_back(index);
  for (const double value : {(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0})
    targets.boxes.push_back(static_cast<float>(value));
}

// The objects of a part of an image of {height, width} pixels, as shares of its size.
void append_placed(const DetectionTargets& part, const image::Window& place, const std::array<int64_t, 2>& size,
                   DetectionTargets& targets) {
  const auto height = static_cast<float>(size[0]), width = static_cast<float>(size[1]);
  const auto rows = static_cast<float>(place.height), columns = static_cast<float>(place.width);
  for (size_t box = 0; box < part.boxes.size(); box += 4) {
    const float* const from = part.boxes.data() + box;
    targets.boxes.push_back((static_cast<float>(place.left) + from[0] * columns) / width);
    targets.boxes.push_back((static_cast<float>(place.top) + from[1] * rows) / height);
    targets.boxes.push_back(from[2] * columns / width);
    targets.boxes.push_back(from[3] * rows / height);
  }
  targets.classes.insert(targets.classes.end(), part.classes.begin(), part.classes.end());
}

}  // namespace

ObjectSamples::ObjectSamples(std::shared_ptr<const ObjectDataset> dataset, image::ColorMode mode,
                             const DataRecipe& recipe)
    : dataset_(std::move(dataset)), mode_(mode), exif_(recipe.exif), cache_(dataset_->size(), recipe) {}

ObjectSample ObjectSamples::read(int64_t image) const {
  ObjectSample sample{image::read_image(dataset_->path(image), {.mode = mode_, .apply_exif = exif_})};
  sample.objects = dataset_->objects(image, sample.image.width, sample.image.height);
  return sample;
}

std::shared_ptr<const ObjectSample> ObjectSamples::get(int64_t image) const {
  return cache_.get(image, [&] { return read(image); });
}

DetectionTargets targets_of(const ObjectSample& sample) {
  const auto width = static_cast<double>(sample.image.width), height = static_cast<double>(sample.image.height);
  DetectionTargets targets;
  for (const data::LabelledObject& object : sample.objects) {
    const auto& [left, top, right, bottom] = object.box;
    if (!object.crowd) add_target({left / width, top / height, right / width, bottom / height}, object.index, targets);
  }
  return targets;
}

// What is drawn of a sample, resized; corners of the objects as shares of its size, which may be outside.
struct ObjectAugmentation::Part {
  image::Image image;
  std::vector<std::array<double, 4>> corners;
  std::vector<int64_t> classes;
};

ObjectAugmentation::ObjectAugmentation(const Recipe& recipe, const image::EvalTransform& transform)
    : crop_(recipe.augment.random_resized_crop),
      flip_(recipe.augment.flip == data::Flip::random),
      mosaic_(detection_of(recipe).mosaic),
      size_(transform.size),
      filter_(transform.interpolation),
      colors_(colors_alone(recipe.augment), transform) {}

std::vector<int64_t> ObjectAugmentation::mosaic_of(const data::AugmentKey& key, int64_t count) const {
  RandomStream random(mosaic_key(key), static_cast<uint64_t>(key.sample));
  if (mosaic_ == 0 || data::random_uniform(random, 0, 1) >= mosaic_) return {};
  std::vector<int64_t> others(3);
  for (int64_t& other : others) other = data::random_index(random, count);
  return others;
}

ObjectAugmentation::Part ObjectAugmentation::part_of(const ObjectSample& sample, RandomStream& random, int64_t height,
                                                     int64_t width) const {
  image::Window window{0, 0, sample.image.width, sample.image.height};
  image::Filter filter = filter_;
  if (crop_) {
    window = data::resized_crop_window(*crop_, sample.image.width, sample.image.height, random);
    filter = data::random_choice(random, crop_->interpolation);
  }
  image::ResizeOptions crop;
  crop.crop = window;
  Part part{image::resize(sample.image, width, height, filter, crop), {}, {}};
  const bool flipped = flip_ && data::random_coin(random);
  if (flipped) image::mirror(part.image);
  const auto share = [](double value, int64_t start, int64_t size) {
    return (value - static_cast<double>(start)) / static_cast<double>(size);
  };
  for (const data::LabelledObject& object : sample.objects) {
    if (object.crowd) continue;
    const auto& [left, top, right, bottom] = object.box;
    const double x0 = share(left, window.left, window.width), x1 = share(right, window.left, window.width);
    part.corners.push_back({flipped ? 1 - x1 : x0, share(top, window.top, window.height), flipped ? 1 - x0 : x1,
                            share(bottom, window.top, window.height)});
    part.classes.push_back(object.index);
  }
  return part;
}

// The whole image for one sample, else a quarter.
image::Window ObjectAugmentation::place_of(size_t sample, size_t samples) const {
  const auto [height, width] = size_;
  if (samples == 1) return {0, 0, width, height};
  const int64_t left = sample % 2 == 0 ? 0 : width / 2, top = sample < 2 ? 0 : height / 2;
  return {left, top, sample % 2 == 0 ? width / 2 : width - left, sample < 2 ? height / 2 : height - top};
}

DetectionTargets ObjectAugmentation::apply(const std::vector<std::shared_ptr<const ObjectSample>>& samples,
                                           const data::AugmentKey& key, float* image) const {
  RandomStream random(random_key("objects", key.seed, static_cast<uint64_t>(key.epoch)),
                      static_cast<uint64_t>(key.sample));
  const auto [height, width] = size_;
  image::Image seen = image::make_image(width, height, samples.front()->image.channels);
  DetectionTargets targets;
  for (size_t i = 0; i < samples.size(); ++i) {
    const image::Window place = place_of(i, samples.size());
    const Part part = part_of(*samples[i], random, place.height, place.width);
    for (int64_t y = 0; y < place.height; ++y) {
      std::copy_n(part.image.row(y), place.width * part.image.channels,
                  seen.row(place.top + y) + place.left * part.image.channels);
    }
    DetectionTargets of_part;
    for (size_t object = 0; object < part.classes.size(); ++object)
      add_target(part.corners[object], part.classes[object], of_part);
    append_placed(of_part, place, size_, targets);
  }
  colors_.apply_into(seen, key, image);
  return targets;
}

}  // namespace vitrail::train
