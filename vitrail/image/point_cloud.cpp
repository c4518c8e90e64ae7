// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/point_cloud.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#include "vitrail/base/error.h"

namespace vitrail::image {
namespace {

void append_float(std::vector<uint8_t>& bytes, double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(bits >> shift));
}

}  // namespace

double focal_length(double field_of_view, int64_t width) {
  return static_cast<double>(width) / 2 / std::tan(field_of_view / 2 * std::numbers::pi / 180);
}

std::vector<uint8_t> encode_ply(std::span<const float> depth, const Image& photo, double focal_length) {
  if (photo.channels != 3 || std::cmp_not_equal(depth.size(), photo.width * photo.height)) {
    throw Error("point cloud", str("an RGB image of ", depth.size(), " pixels, as its depth map"),
                str(photo.width, " x ", photo.height, " with ", photo.channels, " channels"));
  }
  if (!(focal_length > 0) || !std::isfinite(focal_length))
    throw Error("point cloud", "a focal length above 0", str(focal_length));
  const auto count = std::ranges::count_if(depth, [](float z) { return z > 0; });
  const std::string header =
      str("ply\nformat binary_little_endian 1.0\nelement vertex ", count,
          "\nproperty float x\nproperty float y\nproperty float z\nproperty uchar red\nproperty uchar green\n"
          "property uchar blue\nend_header\n");
  constexpr size_t kPointBytes = 15;
  std::vector<uint8_t> bytes(header.begin(), header.end());
  bytes.reserve(header.size() + static_cast<size_t>(count) * kPointBytes);
  for (int64_t row = 0; row < photo.height; ++row) {
    for (int64_t column = 0; column < photo.width; ++column) {
      const double z = depth[static_cast<size_t>(row * photo.width + column)];
      if (!(z > 0)) continue;
      append_float(bytes,
                   (static_cast<double>(column) + 0.5 - static_cast<double>(photo.width) / 2) * z / focal_length);
      append_float(bytes, (static_cast<double>(row) + 0.5 - static_cast<double>(photo.height) / 2) * z / focal_length);
      append_float(bytes, z);
      const uint8_t* const color = photo.row(row) + 3 * column;
      bytes.insert(bytes.end(), color, color + 3);
    }
  }
  return bytes;
}

}  // namespace vitrail::image
