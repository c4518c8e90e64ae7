// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/spline_resize_internal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/sam_fixture.h"

namespace vitrail::image {
namespace {

using testing::SamFixture;

// The fixture's height shrinks and its width grows, and both shrink.
TEST(SplineResize, EqualsScikitImage) {
  const SamFixture fixture = testing::sam_fixture("medsam");
  for (const char* name : {"resized", "small"}) {
    const Tensor& want = fixture.golden[name];
    const Image got = resize_spline(fixture.image, want.size(1), want.size(0));
    ASSERT_EQ(static_cast<int64_t>(got.pixels.size()), want.numel());
    const uint8_t* const pixels = want.data<uint8_t>();
    EXPECT_EQ(got.pixels, std::vector<uint8_t>(pixels, pixels + want.numel())) << name;
  }
}

TEST(SplineResize, KeepsWhatIsConstantAndWhatHasTheSameSize) {
  const SamFixture fixture = testing::sam_fixture("medsam");
  const Image same = resize_spline(fixture.image, fixture.image.width, fixture.image.height);
  for (size_t i = 0; i < same.pixels.size(); ++i) EXPECT_NEAR(same.pixels[i], fixture.image.pixels[i], 1);
  const Image row{.width = 3, .height = 1, .channels = 1, .pixels = {40, 40, 40}};
  for (const uint8_t value : resize_spline(row, 7, 5).pixels) EXPECT_NEAR(value, 40, 1);
  EXPECT_TRUE(testing::contains(testing::error_of([&] { resize_spline(row, 0, 5); }), "got 0×5"));
}

TEST(SplineResize, RefusalsNameTheSizeAndAlphaIsDropped) {
  const Image row{.width = 3, .height = 1, .channels = 1, .pixels = {40, 40, 40}};
  EXPECT_ERROR(testing::error_of([&] { resize_spline(row, 0, 5); }), "resize", "0×5");
  EXPECT_ERROR(testing::error_of([&] { resize_spline(row, 5, -1); }), "resize", "5×-1");
  EXPECT_EQ(resize_spline(row, 1, 1).pixels.size(), 1u);
  const std::vector<uint8_t> rgba{10, 20, 30, 40, 50, 60, 70, 80};
  const Image colours = resize_spline(ImageView(rgba.data(), 2, 1, PixelFormat::rgba), 2, 1);
  ASSERT_EQ(colours.channels, 3);
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(colours.pixels[i], rgba[i / 3 * 4 + i % 3], 1) << i;
}

// A cubic spline through the values, mirrored at both ends, solved directly: coefficients c with
// (c[i − 1] + 4 c[i] + c[i + 1]) / 6 = value[i], by Gauss and Seidel's iteration.
TEST(SplineResize, InterpolatesByTheSplineThroughTheValues) {
  const std::vector<double> values{10, 200, 30, 120, 90, 250, 0};
  const int64_t n = std::ssize(values);
  const auto mirrored = [&](int64_t i) { return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i; };
  std::vector<double> c = values;
  for (int round = 0; round < 200; ++round) {
    for (int64_t i = 0; i < n; ++i) {
      const double around = c[static_cast<size_t>(mirrored(i - 1))] + c[static_cast<size_t>(mirrored(i + 1))];
      c[static_cast<size_t>(i)] = (6 * values[static_cast<size_t>(i)] - around) / 4;
    }
  }
  Image row = make_image(n, 1, 1);
  for (int64_t i = 0; i < n; ++i)
    row.pixels[static_cast<size_t>(i)] = static_cast<uint8_t>(values[static_cast<size_t>(i)]);
  const Image got = resize_spline(row, 16, 1);
  for (int64_t x = 0; x < 16; ++x) {
    const double position = (static_cast<double>(x) + 0.5) * 7 / 16 - 0.5;
    double value = 0;
    for (auto i = static_cast<int64_t>(std::floor(position)) - 1; i <= std::floor(position) + 2; ++i) {
      const double d = std::abs(position - static_cast<double>(i));
      const double weight = d < 1 ? 2.0 / 3 - d * d + d * d * d / 2 : d < 2 ? (2 - d) * (2 - d) * (2 - d) / 6 : 0;
      value += weight * c[static_cast<size_t>(mirrored(i))];
    }
    EXPECT_EQ(got.pixels[static_cast<size_t>(x)], static_cast<int>(std::min(std::max(value, 0.0), 250.0))) << x;
  }
}

}  // namespace
}  // namespace vitrail::image
