// SPDX-License-Identifier: Apache-2.0
// Automatic masks from an image to its masks, against segment_anything's generator (tools/golden/sam_everything.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/automatic_parameters.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/sam/automatic.h"

namespace vitrail::sam {
namespace {

using nlohmann::json;
using testing::SamFixture;

const SamFixture& fixture() {
  static const SamFixture fixture = testing::sam_fixture("exact_windows");
  return fixture;
}

const Predictor& predictor() {
  static const Predictor predictor(fixture().model);
  return predictor;
}

const json& everything_cases() {
  static const json cases = json::parse(std::ifstream(testing::fixture("sam/everything.json")))["cases"];
  return cases;
}

int64_t different_pixels(const BinaryMask& a, const BinaryMask& b) {
  int64_t count = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) count += a.pixels[i] != b.pixels[i];
  return count;
}

// Pixels whose logit is nearly 0 may differ, and with them a box and a stability score.
void expect_mask(const AutomaticMask& got, const json& want) {
  EXPECT_NEAR(got.predicted_iou, want["predicted_iou"].get<double>(), 1e-3);
  EXPECT_NEAR(got.stability_score, want["stability_score"].get<double>(), 2e-3);
  EXPECT_EQ((json{{got.point[0], got.point[1]}}), want["point_coords"]);
  EXPECT_EQ((json{got.crop.x0, got.crop.y0, got.crop.x1 - got.crop.x0, got.crop.y1 - got.crop.y0}), want["crop_box"]);
  const BinaryMask mask = decode(got.rle);
  const auto counts = want["segmentation"].get<std::string>();
  EXPECT_LE(different_pixels(mask, decode(from_coco(counts, mask.width, mask.height, "mask"))), 1);
}

class Everything : public ::testing::TestWithParam<std::string> {};

TEST_P(Everything, MasksAreThoseOfTheReferenceInItsOrder) {
  const json& example = everything_cases()[GetParam()];
  const auto masks = automatic_masks(predictor(), fixture().image, testing::automatic_options(example["parameters"]));
  ASSERT_EQ(masks.size(), example["masks"].size());
  for (size_t i = 0; i < masks.size(); ++i) {
    SCOPED_TRACE(i);
    expect_mask(masks[i], example["masks"][i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Parameters, Everything,
                         ::testing::Values("all", "thresholds", "stability_offset", "suppression", "crops",
                                           "small_regions"),
                         [](const auto& info) { return info.param; });

TEST(Everything, AKnownEmbeddingGivesTheSameMasks) {
  const image::Image& image = fixture().image;
  const AutomaticOptions options{
      .points_per_side = 3, .pred_iou_thresh = 0, .stability_score_thresh = 0, .crop_n_layers = 1};
  const auto usual = automatic_masks(predictor(), image, options);
  const auto known = automatic_masks(predictor(), predictor().embed(image), image, options);
  ASSERT_EQ(usual.size(), known.size());
  for (size_t i = 0; i < usual.size(); ++i) EXPECT_EQ(usual[i].rle, known[i].rle) << i;
  const image::Image other = image::make_image(20, 20, 3);
  EXPECT_TRUE(testing::contains(
      testing::error_of([&] { automatic_masks(predictor(), predictor().embed(other), image, options); }), "20×20"));
}

// Alpha is dropped, in the image and in its crops.
TEST(Everything, AnImageWithAlphaHasTheSameMasks) {
  const image::Image& image = fixture().image;
  std::vector<uint8_t> pixels;
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    pixels.insert(pixels.end(), {image.pixels[i], image.pixels[i + 1], image.pixels[i + 2], 255});
  }
  const image::ImageView alpha(pixels.data(), image.width, image.height, image::PixelFormat::rgba);
  const AutomaticOptions options{
      .points_per_side = 2, .pred_iou_thresh = 0, .stability_score_thresh = 0, .crop_n_layers = 1};
  const auto want = automatic_masks(predictor(), image, options);
  const auto got = automatic_masks(predictor(), alpha, options);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[i].rle, want[i].rle) << i;
}

TEST(Everything, ProgressCountsThePointsOfAllCrops) {
  std::vector<std::pair<int64_t, int64_t>> calls;
  AutomaticOptions options{.points_per_side = 3, .points_per_batch = 5, .crop_n_layers = 1};
  options.progress = [&](int64_t done, int64_t total) { calls.emplace_back(done, total); };
  automatic_masks(predictor(), fixture().image, options);
  ASSERT_EQ(calls.size(), 11u);  // 5 and 4 points in each of 5 crops
  EXPECT_EQ(calls[0], (std::pair<int64_t, int64_t>{0, 45}));
  EXPECT_EQ(calls[1], (std::pair<int64_t, int64_t>{5, 45}));
  EXPECT_EQ(calls.back(), (std::pair<int64_t, int64_t>{45, 45}));
}

}  // namespace
}  // namespace vitrail::sam
