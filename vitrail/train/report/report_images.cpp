// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/report/report_images_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/image/resize_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kThumbnailPixels = 160;
constexpr int64_t kExamples = 12;

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

std::vector<image::Image> augmented_images(const Subset& train, data::LoaderOptions options,
                                           std::vector<int64_t> samples) {
  options.batch_size = static_cast<int64_t>(samples.size());
  options.rank = 0, options.ranks = 1, options.repeats = 1;
  options.shuffle = options.balance = false;
  options.subset = std::move(samples);
  data::Loader loader(train.dataset, options);
  loader.start(0);
  std::vector<image::Image> images;
  if (const auto batch = loader.next()) {
    for (int64_t i = 0; i < batch->images.size(0); ++i)
      images.push_back(make_thumbnail(pixels_of(batch->images, i, options.transform)));
  }
  return images;
}

}  // namespace

image::Image make_thumbnail(const image::Image& image) {
  const int64_t side = std::max(image.width, image.height);
  if (side <= kThumbnailPixels) return image;
  const auto scaled = [&](int64_t length) { return std::max<int64_t>(1, length * kThumbnailPixels / side); };
  return image::resize(image, scaled(image.width), scaled(image.height), image::Filter::bicubic);
}

ReportImages report_images(const Subset& train, const data::LoaderOptions& training) {
  ReportImages result;
  std::vector<int64_t> samples;
  const int64_t size = train.size(), count = std::min(size, kExamples);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = i * size / count;
    const int64_t sample = train.samples.empty() ? position : train.samples[static_cast<size_t>(position)];
    try {
      result.examples.push_back(make_thumbnail(train.dataset->image(sample)));
      samples.push_back(sample);
    } catch (const Error&) {  // the run itself reports it
    }
  }
  if (!samples.empty()) result.augmented = augmented_images(train, training, std::move(samples));
  return result;
}

}  // namespace vitrail::train
