// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/crop_internal.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "vitrail/base/error.h"

namespace vitrail::image {
namespace {

// The window positions [begin, end) of one axis that are inside the source.
std::pair<int64_t, int64_t> inside(int64_t offset, int64_t length, int64_t size) {
  const int64_t begin = std::clamp<int64_t>(-offset, 0, length);
  return {begin, std::max(begin, std::min(length, size - offset))};
}

int64_t reflected(int64_t position, int64_t size) {
  if (position < 0) position = -position;
  return position >= size ? 2 * (size - 1) - position : position;
}

void fill_pixels(uint8_t* out, int64_t pixels, int64_t channels, const Fill& fill) {
  for (int64_t i = 0; i < pixels; ++i, out += channels) std::memcpy(out, fill.data(), static_cast<size_t>(channels));
}

void check_window(const Image& source, const Window& window, Padding padding) {
  if (window.width <= 0 || window.height <= 0) {
    throw Error("crop", "a window with pixels", str(window.width, "×", window.height));
  }
  const auto beyond = [](int64_t offset, int64_t length, int64_t size) {
    return std::max(-offset, offset + length - size);
  };
  if (padding == Padding::reflect && (beyond(window.left, window.width, source.width) >= source.width ||
                                      beyond(window.top, window.height, source.height) >= source.height)) {
    throw Error(
        "crop", "reflect padding smaller than the image",
        str("a window that reaches ", beyond(window.left, window.width, source.width), " and ",
            beyond(window.top, window.height, source.height), " pixels beyond ", source.width, "×", source.height));
  }
}

}  // namespace

Image crop(const Image& source, const Window& window, Padding padding, const Fill& fill) {
  check_image(source, "crop");
  check_window(source, window, padding);
  const int64_t channels = source.channels;
  Image result = make_image(window.width, window.height, channels);
  const auto [left, right] = inside(window.left, window.width, source.width);
  for (int64_t y = 0; y < window.height; ++y) {
    uint8_t* out = result.row(y);
    int64_t from = window.top + y;
    if (padding == Padding::reflect) from = reflected(from, source.height);
    if (from < 0 || from >= source.height) {
      fill_pixels(out, window.width, channels, fill);
      continue;
    }
    const uint8_t* row = source.row(from);
    std::memcpy(out + left * channels, row + (window.left + left) * channels,
                static_cast<size_t>((right - left) * channels));
    for (const auto& [begin, end] : {std::pair{int64_t{0}, left}, std::pair{right, window.width}}) {
      if (padding == Padding::constant) {
        fill_pixels(out + begin * channels, end - begin, channels, fill);
        continue;
      }
      for (int64_t x = begin; x < end; ++x) {
        std::memcpy(out + x * channels, row + reflected(window.left + x, source.width) * channels,
                    static_cast<size_t>(channels));
      }
    }
  }
  return result;
}

void mirror(Image& image) {
  for (int64_t y = 0; y < image.height; ++y) {
    uint8_t* row = image.row(y);
    if (image.channels == 1) {
      std::reverse(row, row + image.width);
      continue;
    }
    for (int64_t left = 0, right = image.width - 1; left < right; ++left, --right) {
      for (int c = 0; c < 3; ++c) std::swap(row[left * 3 + c], row[right * 3 + c]);
    }
  }
}

}  // namespace vitrail::image
