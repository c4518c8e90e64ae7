// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images whose values are class indices, not colours.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace vitrail::image {

struct LabelImage {
  int64_t width = 0, height = 0;
  std::vector<int32_t> labels;  // [height, width]
};

// A PNG with a palette, whose indices are the labels and whose colours do not matter, or one of grey values of up to 16
// bits as they are.  Throws Error naming `where` for another format, for colours without a palette, and as decode().
LabelImage decode_labels(std::span<const std::byte> bytes, const std::string& where);
LabelImage read_labels(const std::filesystem::path& path);

}  // namespace vitrail::image
