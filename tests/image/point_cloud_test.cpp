// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/point_cloud.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail::image {
namespace {

using testing::error_of;

Image numbered_photo(int64_t width, int64_t height) {
  Image photo = make_image(width, height, 3);
  for (size_t i = 0; i < photo.pixels.size(); ++i) photo.pixels[i] = static_cast<uint8_t>(i);
  return photo;
}

// The layout that the header states: three float32 and three bytes a point.
TEST(PointCloud, HasAHeaderAndAPointForEachPixelOfKnownDepth) {
  const std::vector<float> depth{1, 2, 0, 4, 5, 6};
  const std::vector<uint8_t> bytes = encode_ply(depth, numbered_photo(3, 2), 2);
  const std::string header =
      "ply\nformat binary_little_endian 1.0\nelement vertex 5\nproperty float x\nproperty float y\nproperty float z\n"
      "property uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n";
  ASSERT_EQ(bytes.size(), header.size() + 5 * 15);
  EXPECT_EQ(std::string(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(header.size())), header);
  // x = (column + ½ − 3/2) z / f, y = (row + ½ − 1) z / f
  const std::array<std::array<float, 3>, 5> points{
      {{-0.5, -0.25, 1}, {0, -0.5, 2}, {-2, 1, 4}, {0, 1.25, 5}, {3, 1.5, 6}}};
  const std::array<uint8_t, 5> reds{0, 3, 9, 12, 15};
  for (size_t i = 0; i < points.size(); ++i) {
    const uint8_t* const point = bytes.data() + header.size() + 15 * i;
    std::array<float, 3> values{};
    std::memcpy(values.data(), point, 12);
    EXPECT_EQ(values, points[i]) << i;
    EXPECT_EQ(point[12], reds[i]);
    EXPECT_EQ(point[14], reds[i] + 2);
  }
}

TEST(PointCloud, FocalLengthIsThatOfTheFieldOfView) {
  EXPECT_NEAR(focal_length(90, 640), 320, 1e-9);
  EXPECT_NEAR(2 * std::atan(400 / focal_length(57.5, 800)) * 180 / M_PI, 57.5, 1e-9);
}

TEST(PointCloud, RefusesWhatDoesNotFit) {
  const std::vector<float> depth(6, 1);
  EXPECT_ERROR(error_of([&] { encode_ply(depth, numbered_photo(3, 3), 2); }), "point cloud", "3 x 3 with 3 channels");
  EXPECT_ERROR(error_of([&] { encode_ply(depth, make_image(3, 2, 1), 2); }), "point cloud", "3 x 2 with 1 channels");
  EXPECT_ERROR(error_of([&] { encode_ply(depth, numbered_photo(3, 2), 0); }), "point cloud", "0");
}

}  // namespace
}  // namespace vitrail::image
