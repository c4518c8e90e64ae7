// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/enhance_internal.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "vitrail/image/color_internal.h"
#include "vitrail/image/point_operations_internal.h"

namespace vitrail::image {
namespace {

// Pillow's ImagingBlend for one value.  Pillow clamps only factors outside [0, 1]; for others clamping has no effect.
uint8_t blend(int degenerate, int value, float factor) {
  const float mixed = static_cast<float>(degenerate) + factor * static_cast<float>(value - degenerate);
  return static_cast<uint8_t>(static_cast<int>(std::min(std::max(mixed, 0.0f), 255.0f)));
}

void blend_with_constant(Image& image, int degenerate, double factor) {
  PointTable table;
  for (int value = 0; value < 256; ++value) table[value] = blend(degenerate, value, static_cast<float>(factor));
  apply_table(image, table);
}

// Pillow's SMOOTH kernel, 3×3 with weights 1 and 5 in the centre over 13, rounded.  A multiple of 1/13 is never closer
// than 1/26 to a half, so integer arithmetic equals Pillow's single precision.
void smooth_row(const uint8_t* above, const uint8_t* row, const uint8_t* below, int64_t length, int64_t channels,
                uint8_t* out) {
  std::memcpy(out, row, static_cast<size_t>(std::min(channels, length)));
  for (int64_t i = channels; i < length - channels; ++i) {
    const int64_t left = i - channels, right = i + channels;
    const uint32_t sum = uint32_t{above[left]} + above[i] + above[right] + row[left] + 5u * row[i] + row[right] +
                         below[left] + below[i] + below[right];
    out[i] = static_cast<uint8_t>((2 * sum + 13) / 26);
  }
  if (length > channels) std::memcpy(out + length - channels, row + length - channels, static_cast<size_t>(channels));
}

struct Hsv {
  int hue, saturation, value;
};

Hsv to_hsv(int red, int green, int blue) {
  const int max = std::max({red, green, blue}), min = std::min({red, green, blue});
  if (max == min) return {0, 0, max};
  const float range = static_cast<float>(max - min);
  const float saturation = range / static_cast<float>(max);
  const float r = static_cast<float>(max - red) / range, g = static_cast<float>(max - green) / range,
              b = static_cast<float>(max - blue) / range;
  float hue = b - g;
  if (red != max) hue = static_cast<float>(green == max ? 2.0 + r - b : 4.0 + g - r);
  hue = static_cast<float>(std::fmod(hue / 6.0 + 1.0, 1.0));
  return {std::clamp(static_cast<int>(hue * 255.0), 0, 255), std::clamp(static_cast<int>(saturation * 255.0), 0, 255),
          max};
}

void to_rgb(const Hsv& color, uint8_t* out) {
  if (color.saturation == 0) {
    out[0] = out[1] = out[2] = static_cast<uint8_t>(color.value);
    return;
  }
  const float hue = static_cast<float>(color.hue), value = static_cast<float>(color.value);
  const int sector = static_cast<int>(hue * 6.0 / 255.0);
  const float fraction = static_cast<float>(hue * 6.0 / 255.0 - sector);
  const float saturation = static_cast<float>(color.saturation / 255.0);
  const auto level = [](double x) { return static_cast<uint8_t>(std::clamp(static_cast<int>(std::round(x)), 0, 255)); };
  const uint8_t v = static_cast<uint8_t>(color.value), p = level(value * (1.0 - saturation)),
                q = level(value * (1.0 - saturation * fraction)),
                t = level(value * (1.0 - saturation * (1.0 - fraction)));
  const uint8_t sectors[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  std::memcpy(out, sectors[sector % 6], 3);
}

}  // namespace

void adjust_brightness(Image& image, double factor) { blend_with_constant(image, 0, factor); }

void adjust_contrast(Image& image, double factor) {
  const int64_t pixels = image.width * image.height;
  int64_t sum = 0;
  const uint8_t* pixel = image.pixels.data();
  for (int64_t i = 0; i < pixels; ++i, pixel += image.channels) {
    sum += image.channels == 1 ? *pixel : luma(pixel[0], pixel[1], pixel[2]);
  }
  const double mean = static_cast<double>(sum) / static_cast<double>(pixels);
  blend_with_constant(image, static_cast<int>(mean + 0.5), factor);
}

void adjust_color(Image& image, double factor) {
  if (image.channels == 1) return;  // the degenerate image equals the image
  const float weight = static_cast<float>(factor);
  uint8_t* pixel = image.pixels.data();
  for (const uint8_t* end = pixel + image.pixels.size(); pixel < end; pixel += 3) {
    const int grey = luma(pixel[0], pixel[1], pixel[2]);
    for (int c = 0; c < 3; ++c) pixel[c] = blend(grey, pixel[c], weight);
  }
}

void adjust_sharpness(Image& image, double factor) {
  if (image.height < 3 || image.width < 3) return;  // edge pixels only, which do not change
  const float weight = static_cast<float>(factor);
  const int64_t length = image.row_bytes();
  std::vector<uint8_t> above(image.row(0), image.row(0) + length), current(length), smooth(length);
  for (int64_t y = 1; y + 1 < image.height; ++y) {
    uint8_t* row = image.row(y);
    std::memcpy(current.data(), row, static_cast<size_t>(length));
    smooth_row(above.data(), current.data(), image.row(y + 1), length, image.channels, smooth.data());
    for (int64_t i = 0; i < length; ++i) row[i] = blend(smooth[i], row[i], weight);
    std::swap(above, current);
  }
}

void adjust_hue(Image& image, double shift) {
  if (image.channels == 1) return;
  const int offset = static_cast<int>(shift * 255);
  uint8_t* pixel = image.pixels.data();
  for (const uint8_t* end = pixel + image.pixels.size(); pixel < end; pixel += 3) {
    Hsv color = to_hsv(pixel[0], pixel[1], pixel[2]);
    color.hue = (color.hue + offset) & 0xff;
    to_rgb(color, pixel);
  }
}

}  // namespace vitrail::image
