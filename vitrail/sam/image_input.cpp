// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/image_input_internal.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "vitrail/base/error.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/image/spline_resize_internal.h"
#include "vitrail/ops/resize.h"

namespace vitrail::sam {
namespace {

using models::SamPreprocessing;

std::array<int64_t, 2> long_side_resized(int64_t height, int64_t width, int64_t size) {
  const double scale = static_cast<double>(size) / static_cast<double>(std::max(height, width));
  auto side = [scale](int64_t n) { return static_cast<int64_t>(static_cast<double>(n) * scale + 0.5); };
  return {side(height), side(width)};
}

void write_normalised(const image::Image& resized, int64_t size, float* input) {
  std::fill_n(input, 3 * size * size, 0.0f);
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < resized.height; ++y) {
      const uint8_t* const row = resized.row(y) + c;
      float* const to = input + (c * size + y) * size;
      for (int64_t x = 0; x < resized.width; ++x) {
        to[x] = (static_cast<float>(row[3 * x]) - models::kSamImageMean[c]) / models::kSamImageStd[c];
      }
    }
  }
}

// MedSAM_Inference.py: scales from the range of the values to 0–1.
void write_scaled(const image::Image& image, float* input) {
  const auto [min, max] = std::ranges::minmax(image.pixels);
  const double range = std::max<double>(max - min, 1e-8);
  const int64_t area = image.width * image.height;
  for (int64_t i = 0; i < area; ++i) {
    for (int64_t c = 0; c < 3; ++c) {
      input[c * area + i] = static_cast<float>((image.pixels[static_cast<size_t>(3 * i + c)] - min) / range);
    }
  }
}

std::span<float> values_of(const Tensor& tensor) { return {tensor.data<float>(), static_cast<size_t>(tensor.numel())}; }

// Enlarges probabilities, as MedSAM_Inference.py does.  In float, a logit beyond ±16 has probability 0 or 1.
Tensor enlarged_probabilities(const Tensor& mask, int64_t height, int64_t width) {
  const Tensor probabilities = mask.contiguous().clone();
  for (float& value : values_of(probabilities)) value = 1 / (1 + std::exp(-value));
  const Tensor result = ops::resize_bilinear(probabilities, height, width);
  for (float& value : values_of(result)) value = std::log(value / (1 - value));
  return result;
}

}  // namespace

std::array<int64_t, 2> InputFrame::sides(int64_t height, int64_t width) const {
  if (preprocessing != SamPreprocessing::segment_anything) return {size, size};
  return long_side_resized(height, width, size);
}

image::Image InputFrame::resized(const image::ImageView& view) const {
  const auto [height, width] = sides(view.height(), view.width());
  if (height < 1 || width < 1) {
    throw Error("image", str("sides that are at least 1 pixel when the long one is resized to ", size),
                str(view.width(), "×", view.height()));
  }
  const bool spline = preprocessing == SamPreprocessing::medsam;
  auto resize = [&, height = height, width = width](const image::ImageView& rgb) {
    return spline ? image::resize_spline(rgb, width, height)
                  : image::resize(rgb, width, height, image::Filter::bilinear);
  };
  return view.format() == image::PixelFormat::rgb ? resize(view) : resize(image::to_image(view, image::ColorMode::rgb));
}

void InputFrame::write(const image::Image& resized, float* input) const {
  if (preprocessing == SamPreprocessing::medsam) {
    write_scaled(resized, input);
  } else {
    write_normalised(resized, size, input);
  }
}

Tensor InputFrame::image_logits(const Tensor& mask, int64_t height, int64_t width) const {
  if (preprocessing == SamPreprocessing::medsam) return enlarged_probabilities(mask, height, width);
  if (preprocessing == SamPreprocessing::segment_anything_2) return ops::resize_bilinear(mask, height, width);
  const auto [rows, columns] = sides(height, width);
  const Tensor frame = ops::resize_bilinear(mask, size, size);
  return ops::resize_bilinear(
      frame.narrow(0, 0, std::max<int64_t>(rows, 1)).narrow(1, 0, std::max<int64_t>(columns, 1)), height, width);
}

InputFrame input_frame(const models::SamConfig& config) { return {config.encoder.image_size(), config.preprocessing}; }

}  // namespace vitrail::sam
