// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/segmentation/segment_draw_internal.h"

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

// A mask of a pixel vanishes when the image is reduced, and is no object then.
TEST(SegmentSamples, MasksThatVanishAreLeftOut) {
  const fs::path root = testing::scratch_folder();
  fs::create_directories(root / "train/00");
  image::Image mask = image::make_image(64, 64, 1);
  image::write_png(root / "train/00.png", image::make_image(64, 64, 3));
  mask.row(5)[9] = 255;
  image::write_png(root / "train/00/0.png", mask);
  for (int64_t y = 10; y < 20; ++y) std::fill_n(mask.row(y), 30, uint8_t{255});
  image::write_png(root / "train/00/1.png", mask);
  const Recipe recipe = parse_recipe(tiny_segment_recipe(root), "r.json");
  const SegmentSamples samples(sam::open_instances(root, "train"), {.size = kSize}, recipe.data);
  ASSERT_EQ(samples.dataset().masks(0, 64, 64).size(), 2u);
  const auto sample = samples.get(0);
  ASSERT_EQ(sample->masks.size(), 1u);
  EXPECT_EQ(sam::area(sample->masks[0]), 15 * 5);
}

TEST(FramedMask, HasThePixelsThatAreCoveredByHalf) {
  sam::BinaryMask mask = sam::make_mask(64, 32);
  for (int64_t y = 0; y < 32; ++y) {
    for (int64_t x = 0; x < 64; ++x) mask.row(y)[x] = x < 21 && y < 31;
  }
  const sam::BinaryMask framed = sam::decode(framed_mask(sam::encode(mask), {.size = kSize}));
  ASSERT_EQ(framed.width, kSize);
  ASSERT_EQ(framed.height, kSize);
  for (int64_t y = 0; y < kSize; ++y) {
    for (int64_t x = 0; x < kSize; ++x) {
      const bool inside = y < 16 && (x < 10 || (x == 10 && y < 15));
      EXPECT_EQ(framed.row(y)[x] != 0, inside) << x << " " << y;
    }
  }
}

TEST(SegmentSamples, AreKeptUpToTheLimit) {
  const fs::path instances = make_instances(3, 1);
  for (const int64_t megabytes : {0, 1}) {
    Recipe recipe = parse_recipe(tiny_segment_recipe(instances), "r.json");
    recipe.data.keep_decoded_mb = megabytes;
    const SegmentSamples samples(sam::open_instances(instances, "train"), {.size = kSize}, recipe.data);
    EXPECT_EQ(samples.get(1) == samples.get(1), megabytes == 1);
    EXPECT_NE(samples.get(0)->key, samples.get(1)->key);
  }
}

// Images of 512×384 pixels have 0.56 MB: one of them fits.
TEST(SegmentSamples, TheLimitIsThatOfAllImages) {
  const fs::path instances = make_instances(3, 1);
  Recipe recipe = parse_recipe(tiny_segment_recipe(instances), "r.json");
  recipe.data.keep_decoded_mb = 1;
  const SegmentSamples samples(sam::open_instances(instances, "train"), {.size = 512}, recipe.data);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(samples.get(i) == samples.get(i), i == 0) << i;
}

TEST(SegmentSamples, AnUnreadableImageIsToldOnce) {
  const fs::path instances = make_instances(2, 1);
  write_file(instances / "train/00.png", "none");
  Recipe recipe = parse_recipe(tiny_segment_recipe(instances), "r.json", {"data.unreadable=skip"});
  const SegmentSamples samples(sam::open_instances(instances, "train"), {.size = kSize}, recipe.data);
  const Warnings warnings;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(samples.get(0), nullptr);
  EXPECT_NE(samples.get(1), nullptr);
  EXPECT_EQ(samples.unreadable(), 1);
  EXPECT_EQ(warnings.messages.size(), 1u);
  EXPECT_TRUE(warnings.any("00.png"));
  recipe.data.unreadable = data::Unreadable::error;
  const SegmentSamples strict(sam::open_instances(instances, "train"), {.size = kSize}, recipe.data);
  EXPECT_TRUE(contains(error_of([&] { strict.get(0); }), "00.png"));
}

TEST(SegmentDraw, EveryMaskIsDrawnBeforeOneIsRepeated) {
  const fs::path instances = make_instances(2, 1);  // two objects in each image
  const Recipe recipe = parse_recipe(tiny_segment_recipe(instances), "r.json",
                                     {"segment.prompts=4", "augment.flip=none", "segment.box_share=0.5"});
  const SegmentSamples samples(sam::open_instances(instances, "train"), {.size = kSize}, recipe.data);
  const SegmentDraw draw(recipe, samples, kSize, kSize);
  int boxes = 0;
  for (int64_t position = 0; position < 40; ++position) {
    const DrawnSample drawn = draw.draw(position % 2, 0, position), again = draw.draw(position % 2, 0, position);
    ASSERT_EQ(drawn.prompts.size(), 4u);
    const auto target = [&](size_t i) { return drawn.prompts[i].target.pixels; };
    EXPECT_NE(target(0), target(1));
    EXPECT_EQ(target(0), target(2));
    EXPECT_EQ(target(1), target(3));
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(drawn.prompts[i].box.has_value(), drawn.prompts[i].points.empty());
      EXPECT_EQ(drawn.prompts[i].box.has_value(), again.prompts[i].box.has_value());
      EXPECT_EQ(target(i), again.prompts[i].target.pixels);
      boxes += drawn.prompts[i].box.has_value();
    }
  }
  EXPECT_NEAR(boxes, 80, 25);
}

TEST(SegmentDraw, TargetsHaveTheCellsThatAreCoveredByHalf) {
  const fs::path instances = portrait_with_object();  // columns 1 to 7 and rows 4 to 19 of 32
  const Recipe recipe = parse_recipe(tiny_segment_recipe(instances), "r.json", {"augment.flip=none"});
  const SegmentSamples samples(sam::open_instances(instances, "train"), {.size = kSize}, recipe.data);
  const SegmentDraw draw(recipe, samples, kSize, 8);  // cells of 4 pixels
  const DrawnSample drawn = draw.draw(0, 0, 0);
  EXPECT_EQ(drawn.key, samples.get(0)->key) << "not flipped";
  for (const DrawnPrompt& prompt : drawn.prompts) {
    ASSERT_EQ(prompt.target.width, 8);
    ASSERT_EQ(prompt.target.height, 8);
    for (int64_t y = 0; y < 8; ++y) {
      for (int64_t x = 0; x < 8; ++x) EXPECT_EQ(prompt.target.row(y)[x], x < 2 && y >= 1 && y < 5) << x << " " << y;
    }
    if (prompt.box) {
      EXPECT_NEAR(prompt.box->x0, 1, 0.7);
      EXPECT_NEAR(prompt.box->y1, 20, 0.7);
    } else {
      EXPECT_EQ(prompt.points.at(0).label, 1);
      EXPECT_TRUE(prompt.points[0].x >= 1 && prompt.points[0].x < 8);
      EXPECT_TRUE(prompt.points[0].y >= 4 && prompt.points[0].y < 20);
    }
  }
}

TEST(SegmentDraw, FollowsTheSeedTheEpochAndThePosition) {
  const fs::path instances = make_instances(1, 1);
  const auto drawn = [&](const char* seed, int64_t epoch, int64_t position) {
    const Recipe recipe = parse_recipe(tiny_segment_recipe(instances), "r.json", {seed, "segment.box_share=0"});
    const SegmentSamples samples(sam::open_instances(instances, "train"), {.size = kSize}, recipe.data);
    DrawnSample sample = SegmentDraw(recipe, samples, kSize, kSize).draw(0, epoch, position);
    std::vector<double> numbers;
    for (DrawnPrompt& prompt : sample.prompts) {
      numbers.push_back(prompt.points.at(0).x);
      numbers.push_back(prompt.points[0].y);
      numbers.push_back(prompt.random.uniform());
    }
    return numbers;
  };
  const std::vector<double> first = drawn("seed=1", 2, 3);
  ASSERT_EQ(first.size(), 6u);
  EXPECT_NE(first[2], first[5]) << "each prompt has its own corrections";
  EXPECT_EQ(drawn("seed=1", 2, 3), first);
  EXPECT_NE(drawn("seed=2", 2, 3), first);
  EXPECT_NE(drawn("seed=1", 1, 3), first);
  EXPECT_NE(drawn("seed=1", 2, 4), first);
}

TEST(SegmentDraw, TheShareOfBoxesIsTheRecipes) {
  const fs::path instances = make_instances(1, 1);
  for (const char* share : {"0", "1"}) {
    const Recipe recipe =
        parse_recipe(tiny_segment_recipe(instances), "r.json", {str("segment.box_share=", share), "segment.prompts=9"});
    const SegmentSamples samples(sam::open_instances(instances, "train"), {.size = kSize}, recipe.data);
    const DrawnSample drawn = SegmentDraw(recipe, samples, kSize, kSize).draw(0, 0, 0);
    ASSERT_EQ(drawn.prompts.size(), 9u);
    for (const DrawnPrompt& prompt : drawn.prompts) {
      EXPECT_EQ(prompt.box.has_value(), *share == '1');
      EXPECT_EQ(prompt.points.size(), *share == '1' ? 0u : 1u);
    }
  }
}

TEST(SegmentDraw, AnImageWithoutMasksOrThatCannotBeReadHasNoPrompts) {
  const fs::path instances = make_instances(2, 1);
  for (const char* mask : {"0.png", "1.png"})
    image::write_png(instances / "train/01" / mask, image::make_image(32, 24, 1));
  const Recipe recipe = parse_recipe(tiny_segment_recipe(instances), "r.json", {"data.unreadable=skip"});
  const SegmentSamples samples(sam::open_instances(instances, "train"), {.size = kSize}, recipe.data);
  const SegmentDraw draw(recipe, samples, kSize, kSize);
  const DrawnSample empty = draw.draw(1, 0, 0);
  EXPECT_TRUE(empty.prompts.empty());
  EXPECT_FALSE(empty.unreadable);
  EXPECT_EQ(empty.image.width, 32);
  EXPECT_FALSE(draw.draw(0, 0, 0).unreadable);
  write_file(instances / "train/00.png", "none");
  const SegmentSamples spoilt(sam::open_instances(instances, "train"), {.size = kSize}, recipe.data);
  const Warnings warnings;
  const DrawnSample unreadable = SegmentDraw(recipe, spoilt, kSize, kSize).draw(0, 0, 0);
  EXPECT_TRUE(unreadable.unreadable && unreadable.prompts.empty());
}

}  // namespace
}  // namespace vitrail::train
