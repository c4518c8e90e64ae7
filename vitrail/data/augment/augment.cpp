// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/augment/augment.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/data/augment/augment_checks_internal.h"
#include "vitrail/data/augment/auto_augment_internal.h"
#include "vitrail/data/augment/random_draws_internal.h"
#include "vitrail/data/augment/random_erasing_internal.h"
#include "vitrail/data/augment/random_resized_crop_internal.h"
#include "vitrail/image/crop_internal.h"
#include "vitrail/image/enhance_internal.h"
#include "vitrail/image/gaussian_blur_internal.h"
#include "vitrail/image/normalize_internal.h"
#include "vitrail/image/point_operations_internal.h"
#include "vitrail/image/resize_internal.h"

namespace vitrail::data {
namespace {

using image::Fill;
using image::Image;

// Each transform has a random stream of its own, so that switching one on or off leaves the draws of the others alone.
enum class Draw : uint64_t { crop, flip, affine, policy, jitter, erasing, count };

uint64_t sample_key(const AugmentKey& key) {
  const uint64_t epoch = random_key("augment", key.seed, static_cast<uint64_t>(key.epoch));
  const uint64_t sample = random_key("sample", epoch, static_cast<uint64_t>(key.sample));
  return key.view == 0 ? sample : random_key("view", sample, static_cast<uint64_t>(key.view));
}

RandomStream stream_for(Draw draw, const AugmentKey& key) {
  const uint64_t first_stream = static_cast<uint64_t>(key.repeat) * static_cast<uint64_t>(Draw::count);
  return RandomStream(sample_key(key), first_stream + static_cast<uint64_t>(draw));
}

// The stream of a transform that is not in Draw: one more there would change the streams of all repeats.
RandomStream stream_for(const char* transform, const AugmentKey& key) {
  return RandomStream(random_key(transform, sample_key(key)), static_cast<uint64_t>(key.repeat));
}

Fill fill_from(const std::vector<int>& values) {
  Fill fill{};
  for (size_t c = 0; c < 3; ++c) {
    if (!values.empty()) fill[c] = static_cast<uint8_t>(values.size() == 1 ? values[0] : values.at(c));
  }
  return fill;
}

// timm's img_mean: min(255, round(255 · mean)) with Python's rounding (halves to even).
Fill mean_fill(const std::vector<double>& mean) {
  Fill fill{};
  for (size_t c = 0; c < 3; ++c) {
    const double value = 255 * (mean.size() == 1 ? mean[0] : mean.at(c));
    fill[c] = static_cast<uint8_t>(std::clamp(std::nearbyint(value), 0.0, 255.0));
  }
  return fill;
}

void jitter(const ColorJitter& options, RandomStream& random, Image& image) {
  if (options.probability < 1 && random.uniform() >= options.probability) return;
  std::array<int, 4> order{0, 1, 2, 3};
  for (int i = 3; i > 0; --i) std::swap(order[i], order[random_index(random, i + 1)]);
  const auto factor = [&](double x) { return random_uniform(random, std::max(0.0, 1.0 - x), 1.0 + x); };
  const double brightness = factor(options.brightness), contrast = factor(options.contrast),
               saturation = factor(options.saturation), hue = random_uniform(random, -options.hue, options.hue);
  for (const int operation : order) {
    if (operation == 0 && options.brightness > 0) adjust_brightness(image, brightness);
    if (operation == 1 && options.contrast > 0) adjust_contrast(image, contrast);
    if (operation == 2 && options.saturation > 0) adjust_color(image, saturation);
    if (operation == 3 && options.hue > 0) adjust_hue(image, hue);
  }
}

void change_colors(const AugmentOptions& options, const AugmentKey& key, Image& image) {
  const auto applies = [](double probability, RandomStream& random) {
    return probability > 0 && random.uniform() < probability;
  };
  RandomStream grey = stream_for("grayscale", key), blur = stream_for("blur", key),
               solarize = stream_for("solarize", key);
  if (applies(options.grayscale, grey)) adjust_color(image, 0);
  if (options.blur && applies(options.blur->probability, blur)) {
    gaussian_blur(image, random_uniform(blur, options.blur->radius[0], options.blur->radius[1]));
  }
  if (options.solarize && applies(options.solarize->probability, solarize)) {
    image::solarize(image, static_cast<double>(options.solarize->threshold));
  }
}

image::AffineMatrix random_affine_matrix(const RandomAffine& options, RandomStream& random, int64_t width,
                                         int64_t height) {
  image::AffineParts parts;
  const double max_x = options.shift[0] * static_cast<double>(width);
  const double max_y = options.shift[1] * static_cast<double>(height);
  parts.degrees = random_uniform(random, -options.degrees, options.degrees);
  parts.shift_x = std::nearbyint(random_uniform(random, -max_x, max_x));
  parts.shift_y = std::nearbyint(random_uniform(random, -max_y, max_y));
  parts.scale = random_uniform(random, options.scale[0], options.scale[1]);
  return affine_matrix(parts, width, height);
}

}  // namespace

struct Augmentation::Steps {
  Steps(const AugmentOptions& options, const image::EvalTransform& transform)
      : options(options),
        transform(transform),
        normalizer(transform),
        fill(fill_from(options.fill)),
        policy_fill(fill) {
    if (options.policy.empty()) return;
    policy = policy_from_name(options.policy, options.policy_interpolation);
    if (options.fill.empty() && policy->fills_with_mean()) policy_fill = mean_fill(transform.mean);
  }

  Image cropped(const Image& source, const AugmentKey& key) const;
  bool flips(const AugmentKey& key) const;
  Image augmented_image(const Image& source, const AugmentKey& key, bool strong) const;
  // The key of the draws: views are drawn with the key of their first epoch.
  AugmentKey draw_key(AugmentKey key) const {
    key.epoch = options.draw_epoch(key.epoch);
    return key;
  }

  AugmentOptions options;
  image::EvalTransform transform;
  std::unique_ptr<const AugmentPolicy> policy;
  image::Normalizer normalizer;
  Fill fill, policy_fill;
};

Image Augmentation::Steps::cropped(const Image& source, const AugmentKey& key) const {
  const int64_t height = transform.size[0], width = transform.size[1];
  RandomStream random = stream_for(Draw::crop, key);
  if (options.random_resized_crop) {
    const RandomResizedCrop& crop = *options.random_resized_crop;
    image::ResizeOptions resize_options;
    resize_options.crop = resized_crop_window(crop, source.width, source.height, random);
    return resize(source, width, height, random_choice(random, crop.interpolation), resize_options);
  }
  if (!options.padded_crop) return apply_geometry(source, transform);
  const int64_t padding = options.padded_crop->padding;
  const int64_t left = random_integer(random, -padding, padding), top = random_integer(random, -padding, padding);
  const bool reflect = options.padded_crop->mode == PaddedCrop::Mode::reflect;
  const auto random_window = [&](const Image& image) {
    return crop(image, {left, top, width, height}, reflect ? image::Padding::reflect : image::Padding::constant, fill);
  };
  if (source.width == width && source.height == height) return random_window(source);
  return random_window(resize(source, width, height, transform.interpolation));
}

bool Augmentation::Steps::flips(const AugmentKey& key) const {
  if (options.flip == Flip::none) return false;
  if (options.flip == Flip::random) {
    RandomStream random = stream_for(Draw::flip, key);
    return random_coin(random);
  }
  RandomStream random(random_key("flip", key.seed, static_cast<uint64_t>(key.sample)));
  return random_coin(random) != ((key.epoch + key.repeat + key.view) % 2 != 0);
}

Image Augmentation::Steps::augmented_image(const Image& source, const AugmentKey& key, bool strong) const {
  Image result = cropped(source, key);
  if (flips(key)) mirror(result);
  if (!strong) return result;
  if (options.affine) {
    RandomStream random = stream_for(Draw::affine, key);
    const image::AffineMatrix matrix = random_affine_matrix(*options.affine, random, result.width, result.height);
    result = affine(result, matrix, options.affine->interpolation, fill);
  }
  if (policy) {
    RandomStream random = stream_for(Draw::policy, key);
    if (options.policy_share >= 1 || random.uniform() < options.policy_share) {
      for (const OpCall& call : policy->draw(random, result.width, result.height)) apply(call, result, policy_fill);
    }
  }
  if (options.color_jitter) {
    RandomStream random = stream_for(Draw::jitter, key);
    jitter(*options.color_jitter, random, result);
  }
  change_colors(options, key, result);
  return result;
}

Augmentation::Augmentation(const AugmentOptions& options, const image::EvalTransform& transform) {
  check(options, transform);
  steps_ = std::make_unique<const Steps>(options, transform);
}

Augmentation::~Augmentation() = default;
Augmentation::Augmentation(Augmentation&&) noexcept = default;

Image Augmentation::augmented_image(const Image& source, const AugmentKey& key) const {
  return steps_->augmented_image(source, steps_->draw_key(key), steps_->options.strong(key.epoch));
}

void Augmentation::apply_into(const Image& source, const AugmentKey& key, float* out) const {
  const Image result = augmented_image(source, key);
  steps_->normalizer.apply_into(result, out);
  if (!steps_->options.strong(key.epoch) || steps_->options.erasing.probability <= 0) return;
  RandomStream random = stream_for(Draw::erasing, steps_->draw_key(key));
  erase(steps_->options.erasing, result.channels, result.height, result.width, random, out);
}

}  // namespace vitrail::data
