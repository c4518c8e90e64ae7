// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/report/report_images_internal.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/image/resize_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kThumbnailPixels = 160;
constexpr int64_t kExamples = 12;

// Up to `count` evenly spaced samples that can be read, and their thumbnails.
struct Examples {
  std::vector<int64_t> samples;
  std::vector<image::Image> thumbnails;
};

Examples examples_of(const Subset& train, int64_t count) {
  Examples result;
  const int64_t size = train.size();
  count = std::min(size, count);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = i * size / count;
    const int64_t sample = train.samples.empty() ? position : train.samples[static_cast<size_t>(position)];
    try {
      result.thumbnails.push_back(make_thumbnail(train.dataset->image(sample)));
      result.samples.push_back(sample);
    } catch (const Error&) {  // the run itself reports it
    }
  }
  return result;
}

// These samples in a batch of the first epoch.
std::optional<data::Batch> batch_of(const Subset& train, data::LoaderOptions options,
                                    const std::vector<int64_t>& samples) {
  if (samples.empty()) return std::nullopt;
  options.batch_size = std::ssize(samples);
  options.rank = 0, options.ranks = 1, options.repeats = 1;
  options.shuffle = options.balance = false;
  options.subset = samples;
  data::Loader loader(train.dataset, options);
  loader.start(0);
  return loader.next();
}

}  // namespace

image::Image make_thumbnail(const image::Image& image) {
  const int64_t side = std::max(image.width, image.height);
  if (side <= kThumbnailPixels) return image;
  const auto scaled = [&](int64_t length) { return std::max<int64_t>(1, length * kThumbnailPixels / side); };
  return image::resize(image, scaled(image.width), scaled(image.height), image::Filter::bicubic);
}

// Undoes the normalisation of image `index` of a batch.
image::Image pixels_of(const Tensor& images, int64_t index, const image::EvalTransform& transform) {
  const int64_t channels = images.size(1), height = images.size(2), width = images.size(3);
  image::Image result = image::make_image(width, height, channels);
  const auto of_channel = [](const auto& values, int64_t c) {
    return static_cast<double>(values[values.size() == 1 ? 0 : static_cast<size_t>(c)]);
  };
  const float* planes = images.data<float>() + index * channels * height * width;
  for (int64_t c = 0; c < channels; ++c) {
    const double mean = of_channel(transform.mean, c), std = of_channel(transform.std, c);
    for (int64_t i = 0; i < height * width; ++i) {
      const double value = 255 * (planes[c * height * width + i] * std + mean);
      result.pixels[static_cast<size_t>(i * channels + c)] = static_cast<uint8_t>(std::clamp(value + 0.5, 0.0, 255.0));
    }
  }
  return result;
}

std::vector<Gallery> training_galleries(const Subset& train, const data::LoaderOptions& training) {
  Examples examples = examples_of(train, kExamples);
  std::vector<image::Image> augmented;
  if (const auto batch = batch_of(train, training, examples.samples)) {
    for (int64_t i = 0; i < batch->images.size(0); ++i)
      augmented.push_back(make_thumbnail(pixels_of(batch->images, i, training.transform)));
  }
  return {{"Training images", std::move(examples.thumbnails)},
          {"Training images as the model sees them", std::move(augmented)}};
}

Gallery view_gallery(const Subset& train, const data::LoaderOptions& training, int64_t count) {
  Gallery gallery{"Training images, and views of each as the model sees them", {}};
  const Examples examples = examples_of(train, count);
  const auto batch = batch_of(train, training, examples.samples);
  for (int64_t i = 0; batch && i < std::ssize(batch->samples); ++i) {
    gallery.images.push_back(examples.thumbnails[static_cast<size_t>(i)]);
    for (const Tensor& views : batch->views) {
      for (int64_t row = i; row < views.size(0); row += std::ssize(batch->samples))
        gallery.images.push_back(make_thumbnail(pixels_of(views, row, training.transform)));
    }
  }
  return gallery;
}

}  // namespace vitrail::train
