// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/segment_draw_internal.h"

#include "tests/train/segment_fixture.h"

namespace vitrail::train {
namespace {

constexpr int64_t kSize = 32, kWidth = 20;  // a portrait, which is padded on the right

// A photograph with a bright object near its left edge, and the object's mask.
fs::path portrait_with_object() {
  const fs::path root = testing::scratch_folder();
  image::Image photo = image::make_image(kWidth, kSize, 3), mask = image::make_image(kWidth, kSize, 1);
  for (int64_t y = 4; y < 20; ++y) {
    for (int64_t x = 1; x < 8; ++x) {
      mask.row(y)[x] = 255;
      std::fill_n(photo.row(y) + 3 * x, 3, uint8_t{250});
    }
  }
  for (const char* split : {"train", "val"}) {
    fs::create_directories(root / split / "00");
    image::write_png(root / split / "00.png", photo);
    image::write_png(root / split / "00" / "0.png", mask);
  }
  return root;
}

// The photograph is a portrait, which becomes wider.
TEST(SegmentSamples, FillTheFrameOfMedsam) {
  const fs::path instances = portrait_with_object();
  const Recipe recipe = parse_recipe(tiny_segment_recipe(instances), "r.json");
  const sam::InputFrame frame{.size = kSize, .preprocessing = models::SamPreprocessing::medsam};
  const SegmentSamples samples(sam::open_instances(instances, "train"), frame, recipe.data);
  const auto sample = samples.get(0);
  EXPECT_EQ(sample->image.width, kSize);
  EXPECT_EQ(sample->image.height, kSize);
  const sam::Rle own = samples.dataset().masks(0, kWidth, kSize).at(0);
  EXPECT_NEAR(sam::area(sample->masks.at(0)), sam::area(own) * kSize / kWidth, kSize) << "a column may be rounded";
}

TEST(SegmentDraw, AFlippedImageHasItsMaskWhereTheObjectIs) {
  const fs::path instances = portrait_with_object();
  const Recipe recipe = parse_recipe(tiny_segment_recipe(instances), "r.json");
  const SegmentSamples samples(sam::open_instances(instances, "train"), {.size = kSize}, recipe.data);
  const SegmentDraw draw(recipe, samples, kSize, kSize);
  bool seen[2] = {};  // as it is, and flipped
  for (int64_t position = 0; position < 20; ++position) {
    const DrawnSample drawn = draw.draw(0, 0, position);
    ASSERT_EQ(drawn.image.width, kWidth);
    seen[drawn.key.ends_with("-flip")] = true;
    ASSERT_EQ(drawn.prompts.size(), 2u);  // the recipe's number, of one object
    for (int64_t y = 0; y < kSize; ++y) {
      for (int64_t x = 0; x < kSize; ++x) {
        const bool object = x < kWidth && drawn.image.row(y)[3 * x] == 250;
        ASSERT_EQ(drawn.prompts[0].target.row(y)[x] != 0, object) << drawn.key << " " << x << " " << y;
      }
    }
  }
  EXPECT_TRUE(seen[0] && seen[1]);
}

}  // namespace
}  // namespace vitrail::train
