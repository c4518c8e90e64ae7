// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decodes JPEG, PNG, WebP, GIF, BMP, TIFF and Netpbm files.  The pixels equal those of Pillow's
// Image.open(file).convert("RGB") or convert("L").
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "vitrail/image/image.h"

namespace vitrail::image {

struct DecodeOptions {
  ColorMode mode = ColorMode::rgb;
  // Applies the EXIF orientation (Pillow's ImageOps.exif_transpose).  Off by default, as in timm.
  bool apply_exif = false;
  // Larger images are refused before their pixels are allocated.  The default is Pillow's decompression-bomb limit:
  // 2 · (2^30 / 4 / 3) pixels, which is 512 MiB of RGB.
  int64_t max_pixels = 178'956'970;
};

// Decodes JPEG (grey, YCbCr, RGB, CMYK, YCCK; baseline and progressive), PNG (all bit depths and colour types,
// interlaced or not), WebP (lossy, lossless, alpha), GIF, BMP, TIFF, and PBM, PGM and PPM in text or binary; of an
// animation or several pages the first.  The first bytes determine the format.  Alpha and transparent colours are
// dropped, as in convert().  TIFF's own orientation is always applied, as in Pillow.  Throws Error naming `where` for
// an unknown or unsupported format, truncated or damaged data, and too many pixels.
Image decode(std::span<const std::byte> bytes, const DecodeOptions& options, const std::string& where);

// Whether the first bytes (16 suffice) are those of a format that decode() knows.
bool has_image_signature(std::span<const std::byte> bytes);

// Whether the first 16 bytes are those of a binary file that is not read, such as HEIC or a zip archive.  Files that
// begin with text are not told from text.
bool has_foreign_signature(std::span<const std::byte> bytes);

// Larger files are refused.
inline constexpr size_t kMaxFileBytes = size_t{1} << 30;

// decode() of a file or of what a pipe delivers; errors name the path.
Image read_image(const std::filesystem::path& path, const DecodeOptions& options = {});

// Whether the file name has an image extension, in any case: .jpg .jpeg .jpe .jfif .png .apng .webp .gif .bmp .dib
// .tif .tiff .pbm .pgm .ppm .pnm.
bool is_image_path(const std::filesystem::path& path);

}  // namespace vitrail::image
