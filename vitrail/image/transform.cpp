// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/transform.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/image/normalize_internal.h"
#include "vitrail/image/resize_floats_internal.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/image/transform_geometry_internal.h"

namespace vitrail::image {
namespace {

// The part of the resized image that the crop shows, along one axis.  Only this part is computed.
struct Overlap {
  int64_t first = 0, length = 0;  // positions in the resized image
  int64_t at = 0;                 // offset in the result
};

Overlap overlap(int64_t resized, int64_t offset, int64_t length) {
  const int64_t first = std::max<int64_t>(offset, 0), last = std::min(offset + length, resized);
  return {first, std::max<int64_t>(last - first, 0), first - offset};
}

void reverse_channels(Image& image) {
  for (size_t i = 0; i < image.pixels.size(); i += 3) std::swap(image.pixels[i], image.pixels[i + 2]);
}

Image padding_image(const ResizeAndCrop& plan, int64_t channels, const EvalTransform& transform) {
  Image image = make_image(plan.width, plan.height, channels);
  const std::vector<uint8_t> fill = padding_of(transform, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = fill[i % fill.size()];
  return image;
}

void apply_to_floats(const ImageView& source, const EvalTransform& transform, float* out) {
  if (source.channels() == 4) return apply_to_floats(to_image(source, ColorMode::rgb), transform, out);
  check_statistics(transform, source.channels());
  const auto [height, width] = output_size(transform, source.width(), source.height());
  const std::vector<float> pixels =
      resize_floats(source, width, height, transform.interpolation, transform.processor->antialias);
  normalize_floats(transform, pixels, source.channels(), source.format() == PixelFormat::bgr, out);
}

}  // namespace

CropMode crop_mode_from_name(const std::string& name) {
  if (name == "center") return CropMode::center;
  if (name == "squash") return CropMode::squash;
  if (name == "border") return CropMode::border;
  throw Error("crop_mode", "center, squash or border", "'" + name + "'");
}

std::array<int64_t, 2> output_size(const EvalTransform& transform, int64_t width, int64_t height) {
  const ResizeAndCrop plan = resize_and_crop_of(transform, width, height);
  return {plan.height, plan.width};
}

Region visible_region(const EvalTransform& transform, int64_t width, int64_t height) {
  const ResizeAndCrop plan = resize_and_crop_of(transform, width, height);
  const double x = static_cast<double>(width) / static_cast<double>(plan.resized_width);
  const double y = static_cast<double>(height) / static_cast<double>(plan.resized_height);
  return {static_cast<double>(plan.left) * x, static_cast<double>(plan.top) * y,
          static_cast<double>(plan.left + plan.width) * x, static_cast<double>(plan.top + plan.height) * y};
}

Image apply_geometry(const ImageView& source, const EvalTransform& transform) {
  if (source.channels() == 4) return apply_geometry(to_image(source, ColorMode::rgb), transform);
  const int64_t channels = source.channels();
  check_statistics(transform, channels);
  const ResizeAndCrop plan = resize_and_crop_of(transform, source.width(), source.height());
  const Overlap x = overlap(plan.resized_width, plan.left, plan.width);
  const Overlap y = overlap(plan.resized_height, plan.top, plan.height);
  ResizeOptions options;
  options.window = Window{x.first, y.first, x.length, y.length};
  Image visible = resize(source, plan.resized_width, plan.resized_height, transform.interpolation, options);
  if (source.format() == PixelFormat::bgr) reverse_channels(visible);  // after the resize, which has fewer pixels
  if (visible.width == plan.width && visible.height == plan.height) return visible;
  Image result = padding_image(plan, channels, transform);
  for (int64_t row = 0; row < visible.height; ++row) {
    std::memcpy(result.row(y.at + row) + x.at * channels, visible.row(row), static_cast<size_t>(visible.row_bytes()));
  }
  return result;
}

void apply_into(const ImageView& source, const EvalTransform& transform, float* out) {
  if (transform.processor && transform.processor->resize_floats) return apply_to_floats(source, transform, out);
  Normalizer(transform).apply_into(apply_geometry(source, transform), out);
}

Tensor apply(const ImageView& source, const EvalTransform& transform) {
  const auto [height, width] = output_size(transform, source.width(), source.height());
  const Tensor result = Tensor::empty({source.format() == PixelFormat::grey ? 1 : 3, height, width});
  apply_into(source, transform, result.data<float>());
  return result;
}

}  // namespace vitrail::image
