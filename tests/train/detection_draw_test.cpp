// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/detection/detection_draw_internal.h"

#include <algorithm>
#include <set>

#include "tests/train/detection_fixture.h"

namespace vitrail::train {
namespace {

constexpr int64_t kBoxSide = 16;

// A black image of 32×32 pixels with a white object of 8×8 pixels, and a crowd that training leaves out.
std::shared_ptr<const ObjectSample> sample_at(int64_t left, int64_t top) {
  ObjectSample sample{image::make_image(32, 32, 3), {}};
  for (int64_t y = top; y < top + 8; ++y) std::fill_n(sample.image.row(y) + 3 * left, 24, uint8_t{255});
  const auto x = static_cast<double>(left), y = static_cast<double>(top);
  sample.objects.push_back({.index = 1, .box = {x, y, x + 8, y + 8}});
  sample.objects.push_back({.index = 0, .box = {0, 0, 32, 32}, .crowd = true});
  return std::make_shared<const ObjectSample>(std::move(sample));
}

struct DrawnObjects {
  std::vector<float> image = std::vector<float>(3 * kBoxSide * kBoxSide);
  DetectionTargets targets{};
};

ObjectAugmentation augmentation_of(const std::vector<std::string>& settings) {
  std::vector<std::string> all{"augment.flip=none", "augment.random_resized_crop=null", "augment.color_jitter=null"};
  all.insert(all.end(), settings.begin(), settings.end());
  return {detection_recipe("boxes", all), image::EvalTransform{.size = {kBoxSide, kBoxSide},
                                                               .crop_pct = 1,
                                                               .crop_mode = image::CropMode::squash,
                                                               .interpolation = image::Filter::bilinear,
                                                               .mean = {0},
                                                               .std = {1}}};
}

DrawnObjects drawn(const std::vector<std::string>& settings,
                   const std::vector<std::shared_ptr<const ObjectSample>>& samples, const data::AugmentKey& key = {}) {
  DrawnObjects result;
  result.targets = augmentation_of(settings).apply(samples, key, result.image.data());
  return result;
}

// The white pixels of an image are those of the box, up to a pixel at its sides.
void expect_box_of_white(const DrawnObjects& sample) {
  ASSERT_EQ(sample.targets.classes, (std::vector<int64_t>{1}));
  double left = kBoxSide, right = 0, top = kBoxSide, bottom = 0;
  for (int64_t i = 0; i < kBoxSide * kBoxSide; ++i) {
    if (sample.image[static_cast<size_t>(i)] < 0.5F) continue;
    const auto x = static_cast<double>(i % kBoxSide), y = static_cast<double>(i / kBoxSide);
    left = std::min(left, x), right = std::max(right, x + 1), top = std::min(top, y), bottom = std::max(bottom, y + 1);
  }
  const std::vector<float>& box = sample.targets.boxes;
  EXPECT_NEAR((left + right) / 2 / kBoxSide, box[0], 1.0 / kBoxSide);
  EXPECT_NEAR((top + bottom) / 2 / kBoxSide, box[1], 1.0 / kBoxSide);
  EXPECT_NEAR((right - left) / kBoxSide, box[2], 1.5 / kBoxSide);
  EXPECT_NEAR((bottom - top) / kBoxSide, box[3], 1.5 / kBoxSide);
}

TEST(ObjectAugmentation, WithoutAugmentationIsTheWholeImage) {
  const DrawnObjects sample = drawn({}, {sample_at(4, 16)});
  EXPECT_EQ(sample.targets.classes, (std::vector<int64_t>{1}));
  EXPECT_EQ(sample.targets.boxes, (std::vector<float>{0.25F, 0.625F, 0.25F, 0.25F}));
  const DetectionTargets same = targets_of(*sample_at(4, 16));
  EXPECT_EQ(same.boxes, sample.targets.boxes);
  EXPECT_EQ(same.classes, sample.targets.classes);
}

TEST(ObjectAugmentation, CropsAndFlipsMoveTheBoxes) {
  const std::vector<std::string> settings{"augment.flip=random",
                                          R"(augment.random_resized_crop={"scale": [0.3, 0.9]})"};
  std::set<std::vector<float>> boxes;
  int left_out = 0;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    const data::AugmentKey key{.seed = 1, .epoch = epoch};
    const DrawnObjects sample = drawn(settings, {sample_at(2, 12)}, key);
    EXPECT_EQ(drawn(settings, {sample_at(2, 12)}, key).targets.boxes, sample.targets.boxes);
    boxes.insert(sample.targets.boxes);
    if (sample.targets.classes.empty()) {
      ++left_out;
    } else {
      expect_box_of_white(sample);
    }
  }
  EXPECT_GT(boxes.size(), 20u);
  EXPECT_GT(left_out, 0) << "crops without the object";
  EXPECT_LT(left_out, 30);
}

// Sample i is in quarter i, at half its size.
TEST(ObjectAugmentation, AMosaicHasFourImages) {
  const DrawnObjects sample = drawn({}, {sample_at(0, 0), sample_at(24, 0), sample_at(0, 24), sample_at(24, 24)});
  EXPECT_EQ(sample.targets.classes, (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(sample.targets.boxes,
            (std::vector<float>{0.0625F, 0.0625F, 0.125F, 0.125F, 0.9375F, 0.0625F, 0.125F, 0.125F, 0.0625F, 0.9375F,
                                0.125F, 0.125F, 0.9375F, 0.9375F, 0.125F, 0.125F}));
  for (const size_t corner : {size_t{0}, size_t{15}, size_t{240}, size_t{255}})
    EXPECT_GT(sample.image[corner], 0.9F) << corner;
  EXPECT_LT(sample.image[7 * 16 + 7], 0.1F);
}

TEST(ObjectAugmentation, DrawsMosaicsByTheirProbability) {
  const ObjectAugmentation never = augmentation_of({}), some = augmentation_of({"detect.mosaic=0.5"});
  int mosaics = 0;
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_TRUE(never.mosaic_of({.sample = i}, 7).empty());
    const std::vector<int64_t> others = some.mosaic_of({.sample = i}, 7);
    EXPECT_EQ(some.mosaic_of({.sample = i}, 7), others);
    if (others.empty()) continue;
    ++mosaics;
    ASSERT_EQ(others.size(), 3u);
    EXPECT_TRUE(std::ranges::all_of(others, [](int64_t other) { return other >= 0 && other < 7; }));
  }
  EXPECT_NEAR(mosaics, 50, 20);  // four standard deviations
}

}  // namespace
}  // namespace vitrail::train
