// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/semantic/semantic_draw_internal.h"

#include <algorithm>
#include <set>

#include "tests/support/errors.h"
#include "tests/train/semantic_fixture.h"

namespace vitrail::train {
namespace {

constexpr int64_t kSide = 16;

// Grey images of 32×24 pixels whose values are their labels: 10 y + x / 4.
MapSample numbered_sample() {
  MapSample sample{image::make_image(32, 24, 3), image::make_image(32, 24, 1)};
  for (int64_t y = 0; y < 24; ++y) {
    for (int64_t x = 0; x < 32; ++x) {
      const auto value = static_cast<uint8_t>(10 * (y / 2) + x / 4);
      sample.labels.row(y)[x] = value;
      std::fill_n(sample.image.row(y) + 3 * x, 3, value);
    }
  }
  return sample;
}

struct Augmented {
  std::vector<float> image = std::vector<float>(3 * kSide * kSide);
  std::vector<int64_t> labels = std::vector<int64_t>(kSide * kSide);
};

// The image is in units of pixel values.
Augmented augmented(const std::vector<std::string>& settings, const data::AugmentKey& key) {
  std::vector<std::string> all{"augment.flip=none", "augment.random_resized_crop=null", "augment.color_jitter=null"};
  all.insert(all.end(), settings.begin(), settings.end());
  const Recipe recipe = semantic_recipe("maps", all);
  const image::EvalTransform transform{.size = {kSide, kSide},
                                       .crop_pct = 1,
                                       .crop_mode = image::CropMode::squash,
                                       .interpolation = image::Filter::nearest,
                                       .mean = {0},
                                       .std = {1 / 255.0}};
  Augmented result;
  MapAugmentation(recipe, transform).apply(numbered_sample(), key, result.image.data(), result.labels.data());
  return result;
}

// With the nearest pixel for both, the map has the label of each pixel of the image.
void expect_same_places(const Augmented& sample) {
  for (size_t i = 0; i < sample.labels.size(); ++i)
    ASSERT_NEAR(sample.image[i], static_cast<float>(sample.labels[i]), 1e-3) << i;
}

TEST(MapAugmentation, WithoutAugmentationIsTheWholeImage) {
  const Augmented sample = augmented({}, {});
  expect_same_places(sample);
  EXPECT_EQ(sample.labels.front(), 0);
  EXPECT_EQ(sample.labels.back(), 117);
  EXPECT_EQ(sample.labels[kSide - 1], 7);
  EXPECT_EQ(augmented({}, {.epoch = 5, .sample = 3}).labels, sample.labels);
}

TEST(MapAugmentation, CropsAndFlipsImageAndMapTogether) {
  const std::vector<std::string> settings{"augment.flip=random",
                                          R"(augment.random_resized_crop={"interpolation": "nearest"})"};
  std::set<std::vector<int64_t>> maps;
  int flipped = 0;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const Augmented sample = augmented(settings, {.seed = 1, .epoch = epoch});
    expect_same_places(sample);
    maps.insert(sample.labels);
    flipped += sample.labels.front() > sample.labels[kSide - 1];
    EXPECT_EQ(augmented(settings, {.seed = 1, .epoch = epoch}).labels, sample.labels);
  }
  EXPECT_EQ(maps.size(), 20u);
  EXPECT_GT(flipped, 2);
  EXPECT_LT(flipped, 18);
  EXPECT_NE(augmented(settings, {.seed = 1}).labels, augmented(settings, {.seed = 2}).labels);
  EXPECT_NE(augmented(settings, {.seed = 1}).labels, augmented(settings, {.seed = 1, .sample = 1}).labels);
}

TEST(MapAugmentation, ChangesTheColoursOfTheImageAlone) {
  const Augmented plain = augmented({}, {}), jittered = augmented({"augment.color_jitter={\"brightness\": 0.5}"}, {});
  EXPECT_EQ(jittered.labels, plain.labels);
  EXPECT_NE(jittered.image, plain.image);
}

// Labels are not interpolated, whatever the filter of the image is.
TEST(MapAugmentation, MapsHaveNoLabelsInBetween) {
  const Augmented sample = augmented({R"(augment.random_resized_crop={"interpolation": "bicubic"})"}, {.seed = 3});
  std::set<int64_t> labels(sample.labels.begin(), sample.labels.end());
  for (const int64_t label : labels) EXPECT_LT(label % 10, 8) << label;
}

TEST(MapSamples, NameTheMapOfALabelThatIsNoClass) {
  const fs::path maps = make_maps(2, 1);
  const Recipe recipe = semantic_recipe(maps);
  const SemanticData data = open_semantic_data(recipe);
  const MapSamples samples(data.train, 2, 255, image::ColorMode::rgb, recipe.data);
  EXPECT_ERROR(error_of([&] { samples.get(0); }), (maps / "labels/train/00.png").string(), "2");
  const MapSamples all(data.train, 3, 255, image::ColorMode::rgb, recipe.data);
  EXPECT_EQ(all.get(0)->labels.width, 32);
  EXPECT_EQ(all.get(0), all.get(0));
}

}  // namespace
}  // namespace vitrail::train
