// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pixels to PNG files.
#include <filesystem>
#include <vector>

#include "vitrail/image/image.h"

namespace vitrail::image {

// The file's bytes: 8-bit grey or RGB, not interlaced.  Throws Error for an image without pixels.
std::vector<uint8_t> encode_png(const Image& image);

// Writes beside `path` and renames into place, so that there is never half a file.  Throws Error naming the path.
void write_png(const std::filesystem::path& path, const Image& image);

}  // namespace vitrail::image
