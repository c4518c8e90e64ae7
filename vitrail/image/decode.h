// SPDX-License-Identifier: Apache-2.0
#pragma once
// Image files to pixels, equal to those that Pillow's Image.open(file).convert("RGB") or convert("L") gives.
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "vitrail/image/image.h"

namespace vitrail::image {

struct DecodeOptions {
  ColorMode mode = ColorMode::rgb;
  // Turn the picture as its EXIF orientation says (Pillow's ImageOps.exif_transpose).  timm does not, hence the
  // default.
  bool apply_exif = false;
  // Larger pictures are refused before anything is allocated.  The default is where Pillow stops: twice the pixels that
  // fill a quarter of a GiB at 3 bytes each; 512 MiB of RGB here.
  int64_t max_pixels = 178'956'970;
};

// JPEG (grey, YCbCr, RGB, CMYK, YCCK; baseline and progressive), PNG (every bit depth and colour type, interlaced too),
// WebP (lossy, lossless, alpha) and GIF; of an animation the first picture.  The format is told by the first bytes.
// Alpha and transparent colours are dropped, as convert() does.  Throws Error naming `where`: unknown or unsupported
// format, truncated or broken data, more than max_pixels.
Image decode(std::span<const std::byte> bytes, const DecodeOptions& options, const std::string& where);

// decode() of a file; errors name its path.
Image read_image(const std::filesystem::path& path, const DecodeOptions& options = {});

// Whether a walk through a folder takes this file for an image: .jpg .jpeg .jpe .jfif .png .apng .webp .gif, in any
// case.
bool is_image_path(const std::filesystem::path& path);

}  // namespace vitrail::image
