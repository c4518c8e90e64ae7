// SPDX-License-Identifier: Apache-2.0
#pragma once
// One decoder per file format.  Each converts to options.mode, ignores the EXIF orientation (except where said), and
// throws Error naming `where`.
#include <cstddef>
#include <span>
#include <string>

#include "vitrail/image/decode.h"

namespace vitrail::image {

using Bytes = std::span<const std::byte>;

Image decode_jpeg(Bytes bytes, const DecodeOptions& options, const std::string& where);
Image decode_png(Bytes bytes, const DecodeOptions& options, const std::string& where);
Image decode_webp(Bytes bytes, const DecodeOptions& options, const std::string& where);
Image decode_gif(Bytes bytes, const DecodeOptions& options, const std::string& where);
Image decode_bmp(Bytes bytes, const DecodeOptions& options, const std::string& where);
Image decode_pnm(Bytes bytes, const DecodeOptions& options, const std::string& where);
Image decode_tiff(Bytes bytes, const DecodeOptions& options, const std::string& where);  // applies the orientation

// Throws Error unless 0 < width, 0 < height and width · height ≤ max_pixels.
void check_size(int64_t width, int64_t height, int64_t max_pixels, const std::string& where);

// Throws Error for pixels that need more than three quarters of the process's memory limit.
void check_image_memory(const std::string& where, int64_t bytes, int64_t limit);

// Reserves the memory for an image and one conversion of it, and `extra_bytes_per_pixel` for the decoder.  Waits, and
// throws Error, as decode_memory.h says.
void reserve_pixels(const std::string& where, int64_t width, int64_t height, int64_t extra_bytes_per_pixel = 0);

// Warns of the first image of the process whose grey of more than 8 bits has values of 255 and more: all are white, as
// Pillow reads them.
void check_clamped_grey(const Image& grey, const std::string& where);

}  // namespace vitrail::image
