// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/spline_resize_internal.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace vitrail::image
