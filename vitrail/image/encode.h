// SPDX-License-Identifier: Apache-2.0
#pragma once
// Encodes images as PNG or JPEG.
#include <filesystem>
#include <vector>

#include "vitrail/image/image.h"

namespace vitrail::image {

// The bytes of a PNG file: 8-bit grey or RGB, not interlaced.  Throws Error for an empty or inconsistent image.
std::vector<uint8_t> encode_png(const Image& image);

// The same with an alpha channel: RGBA.  alpha: grey, of the image's size.
std::vector<uint8_t> encode_png(const Image& image, const Image& alpha);

// Grey values of 16 bits, [height, width].
struct Gray16 {
  int64_t width = 0, height = 0;
  std::vector<uint16_t> values;
};
std::vector<uint8_t> encode_png(const Gray16& image);  // 16-bit grey; throws as above

// The bytes of a JPEG file: grey, or RGB with half the resolution of colour.  quality: 1 to 100, as libjpeg's.  Throws
// Error for an empty or inconsistent image, another quality, or an extent above 65,500.
std::vector<uint8_t> encode_jpeg(const Image& image, int quality = 85);

// Writes a temporary file and renames it, so that `path` never holds a partial file.  Throws Error naming the path.
void write_png(const std::filesystem::path& path, const Image& image);

}  // namespace vitrail::image
