// SPDX-License-Identifier: Apache-2.0
#pragma once
// An 8-bit image in memory: channels interleaved, rows from top to bottom without padding.
#include <cstdint>
#include <string>
#include <vector>

namespace vitrail::image {

// The colour mode of a decoded image: Pillow's convert("RGB") or convert("L").
enum class ColorMode { rgb, grey };

inline int64_t channels_of(ColorMode mode) { return mode == ColorMode::rgb ? 3 : 1; }

// pixels [height, width, channels].  All functions of this folder give 1 channel (grey) or 3 (red, green, blue).
struct Image {
  int64_t width = 0, height = 0, channels = 0;
  std::vector<uint8_t> pixels;

  int64_t row_bytes() const { return width * channels; }
  uint8_t* row(int64_t y) { return pixels.data() + y * row_bytes(); }
  const uint8_t* row(int64_t y) const { return pixels.data() + y * row_bytes(); }
};

// An image of this size with all values zero.
inline Image make_image(int64_t width, int64_t height, int64_t channels) {
  return {width, height, channels, std::vector<uint8_t>(static_cast<size_t>(width * height * channels))};
}

// Throws Error naming `where` unless width and height are positive, there are 1 or 3 channels, and the size of `pixels`
// agrees.
void check_image(const Image& image, const std::string& where);

}  // namespace vitrail::image
