// SPDX-License-Identifier: Apache-2.0
// Automatic masks from stored logits, against segment_anything's generator with the same logits.
#include "vitrail/sam/automatic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/automatic_parameters.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"

namespace vitrail::sam {
namespace {

using nlohmann::json;
using testing::contains;
using testing::error_of;

constexpr int64_t kWidth = 200, kHeight = 150, kInput = 96;  // as in tools/golden/sam_automatic.py

const testing::Golden& golden() {
  static const testing::Golden golden = testing::read_golden(testing::fixture("sam/automatic.safetensors"));
  return golden;
}

const json& cases() {
  static const json cases = json::parse(golden().config);
  return cases;
}

// PyTorch's bilinear interpolation with half-pixel centres.
struct Sample {
  int64_t first, second;
  float weight;  // weight of the second
};

Sample sample_at(int64_t i, float scale, int64_t size) {
  const float at = std::max(0.0F, scale * (static_cast<float>(i) + 0.5F) - 0.5F);
  const auto first = std::min(static_cast<int64_t>(at), size - 1);
  return {first, std::min(first + 1, size - 1), at - static_cast<float>(first)};
}

Tensor resized(const Tensor& from, int64_t rows, int64_t columns, int64_t height, int64_t width) {
  const Tensor to = Tensor::empty({height, width});
  const float* in = from.data<float>();
  const int64_t stride = from.size(1);
  for (int64_t y = 0; y < height; ++y) {
    const Sample v = sample_at(y, static_cast<float>(rows) / static_cast<float>(height), rows);
    for (int64_t x = 0; x < width; ++x) {
      const Sample h = sample_at(x, static_cast<float>(columns) / static_cast<float>(width), columns);
      const auto row = [&](int64_t r) {
        return (1 - h.weight) * in[r * stride + h.first] + h.weight * in[r * stride + h.second];
      };
      to.data<float>()[y * width + x] = (1 - v.weight) * row(v.first) + v.weight * row(v.second);
    }
  }
  return to;
}

class StoredLogits : public CropPredictor {
 public:
  void begin(const PixelBox&) override {
    ++crop_;
    point_ = 0;
  }

  std::vector<Masks> predict(std::span<const Prompt> prompts) const override {
    largest_batch = std::max(largest_batch, prompts.size());
    const Tensor &logits = golden()["logits"], &iou = golden()["iou"];
    std::vector<Masks> results;
    for (size_t i = 0; i < prompts.size(); ++i, ++point_) {
      Masks masks{.logits = Tensor::empty({3, logits.size(1), logits.size(2)})};
      for (int64_t m = 0; m < 3; ++m) {
        masks.logits.select(0, m).copy_(logits.select(0, (31 * crop_ + 7 * point_ + 13 * m) % logits.size(0)));
        masks.iou.push_back(iou.data<float>()[(5 * crop_ + 11 * point_ + 3 * m) % iou.size(0)]);
      }
      results.push_back(std::move(masks));
    }
    return results;
  }

  Tensor image_logits(const Tensor& mask, int64_t width, int64_t height) const override {
    ++enlarged;
    const double scale = static_cast<double>(kInput) / static_cast<double>(std::max(width, height));
    const auto input = [&](int64_t side) { return static_cast<int64_t>(static_cast<double>(side) * scale + 0.5); };
    const Tensor frame = resized(mask.contiguous(), mask.size(0), mask.size(1), kInput, kInput);
    return resized(frame, input(height), input(width), height, width);
  }

  mutable size_t largest_batch = 0;
  mutable int enlarged = 0;

 private:
  int64_t crop_ = -1;
  mutable int64_t point_ = 0;
};

std::vector<AutomaticMask> run(const AutomaticOptions& options, StoredLogits source = {}) {
  return automatic_masks(source, kWidth, kHeight, options);
}

// A mask as the reference's record, so that sets of masks can be compared.
json record_of(const AutomaticMask& mask) {
  const auto xywh = [](const PixelBox& box) { return json{box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0}; };
  const std::string score = std::isnan(mask.stability_score) ? "nan" : str(std::lround(mask.stability_score * 1e6));
  return {{"segmentation", to_coco(mask.rle)},
          {"area", area(mask.rle)},
          {"bbox", xywh(mask.box)},
          {"predicted_iou", std::lround(mask.predicted_iou * 1e6)},
          {"stability_score", score},
          {"point_coords", {{mask.point[0], mask.point[1]}}},
          {"crop_box", xywh(mask.crop)}};
}

json record_of(json mask) {
  const float score = std::stof(mask["stability_score"].get<std::string>());
  mask["stability_score"] = std::isnan(score) ? "nan" : str(std::lround(score * 1e6));
  mask["predicted_iou"] = std::lround(mask["predicted_iou"].get<double>() * 1e6);
  return mask;
}

class AutomaticMasks : public ::testing::TestWithParam<std::string> {};

// The set, because torchvision's order of equal scores is another one above a thousand boxes.
TEST_P(AutomaticMasks, AreThoseOfTheReference) {
  const json& example = cases()[GetParam()];
  std::vector<json> got, want;
  for (const AutomaticMask& mask : run(testing::automatic_options(example["parameters"])))
    got.push_back(record_of(mask));
  for (const json& mask : example["masks"]) want.push_back(record_of(mask));
  std::ranges::sort(got);
  std::ranges::sort(want);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], want[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Parameters, AutomaticMasks,
                         ::testing::Values("defaults", "fewer_points", "batches_of_seven", "no_thresholds",
                                           "iou_threshold", "stability_threshold", "stability_offset", "box_nms",
                                           "crops", "two_layers", "overlap", "crop_nms", "small_regions",
                                           "large_regions", "small_regions_of_crops", "grids"),
                         [](const auto& info) { return info.param; });

TEST(AutomaticMasks, OnlyMasksOfSufficientIouAreEnlarged) {
  StoredLogits all, few;
  automatic_masks(all, kWidth, kHeight, {.points_per_side = 6, .points_per_batch = 10, .pred_iou_thresh = 0});
  automatic_masks(few, kWidth, kHeight, {.points_per_side = 6, .points_per_batch = 10, .pred_iou_thresh = 0.8});
  EXPECT_EQ(all.enlarged, 108);
  EXPECT_LT(few.enlarged, 54);
  EXPECT_EQ(all.largest_batch, 10u);
}

// The same square twice: with an island, which makes its box larger, and without.
class SquareWithIsland : public CropPredictor {
 public:
  void begin(const PixelBox&) override {}
  std::vector<Masks> predict(std::span<const Prompt>) const override {
    Masks masks{.logits = Tensor::full({2, 100, 100}, -5), .iou = {0.9F, 0.8F}};
    for (int64_t m = 0; m < 2; ++m) fill(masks.logits.select(0, m), 10, 40);
    fill(masks.logits.select(0, 0), 90, 92);
    return {masks};
  }
  Tensor image_logits(const Tensor& mask, int64_t, int64_t) const override { return mask; }

 protected:
  static void fill(const Tensor& mask, int64_t first, int64_t last, double value = 5) {
    mask.narrow(0, first, last - first).narrow(1, first, last - first).copy_(Tensor::full({1}, value));
  }
};

TEST(AutomaticMasks, OfDuplicatesAfterCleaningTheUntouchedOneRemains) {
  SquareWithIsland source;
  AutomaticOptions options{.points_per_side = 1, .pred_iou_thresh = 0};
  EXPECT_EQ(automatic_masks(source, 100, 100, options).size(), 2u);
  options.min_mask_region_area = 50;
  const auto masks = automatic_masks(source, 100, 100, options);
  ASSERT_EQ(masks.size(), 1u);
  EXPECT_EQ(masks[0].predicted_iou, 0.8F);
}

// A square with an island, and one with a hole.
class Untidy : public SquareWithIsland {
 public:
  std::vector<Masks> predict(std::span<const Prompt>) const override {
    Masks masks{.logits = Tensor::full({2, 100, 100}, -5), .iou = {0.9F, 0.8F}};
    fill(masks.logits.select(0, 0), 10, 40, 5);
    fill(masks.logits.select(0, 0), 90, 92, 5);
    fill(masks.logits.select(0, 1), 50, 80, 5);
    fill(masks.logits.select(0, 1), 60, 63, -5);
    return {masks};
  }
};

TEST(AutomaticMasks, ACleanedMaskHasTheBoxAndTheRunsOfItsPixels) {
  Untidy source;
  const AutomaticOptions options{.points_per_side = 1, .pred_iou_thresh = 0, .min_mask_region_area = 10};
  const auto masks = automatic_masks(source, 100, 100, options);
  ASSERT_EQ(masks.size(), 2u);
  for (const AutomaticMask& mask : masks) {
    EXPECT_EQ(area(mask.rle), 30 * 30);
    EXPECT_EQ(mask.box, bounding_box(decode(mask.rle)));
  }
}

TEST(AutomaticMasks, AreasOutsideTheLimitsAreLeftOut) {
  AutomaticOptions options{.points_per_side = 6, .pred_iou_thresh = 0.2, .stability_score_thresh = 0.5};
  const auto all = run(options);
  options.min_area = 500;
  options.max_area = 4000;
  std::vector<AutomaticMask> want;
  std::ranges::copy_if(all, std::back_inserter(want),
                       [](const AutomaticMask& mask) { return area(mask.rle) >= 500 && area(mask.rle) <= 4000; });
  const auto got = run(options);
  EXPECT_LT(want.size(), all.size());
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].rle, want[i].rle);
  // The limits are the areas of masks.
  options.min_area = area(want.front().rle);
  options.max_area = options.min_area;
  const auto equal = run(options);
  ASSERT_FALSE(equal.empty());
  for (const AutomaticMask& mask : equal) EXPECT_EQ(area(mask.rle), options.min_area);
}

TEST(AutomaticMasks, OptionsOutsideTheirRangesAreErrors) {
  const auto error = [](const AutomaticOptions& options) { return error_of([&] { run(options); }); };
  EXPECT_TRUE(contains(error({.points_per_side = 0}), "points_per_side"));
  EXPECT_TRUE(contains(error({.points_per_side = 100000}), "points_per_side: expected at most 1024, got 100000"));
  EXPECT_TRUE(contains(error({.points_per_side = 2, .crop_n_layers = 1, .crop_n_points_downscale_factor = 4}),
                       "at least one point per side in layer 1"));
  EXPECT_TRUE(contains(error({.points_per_batch = 0}), "points_per_batch"));
  EXPECT_TRUE(contains(error({.pred_iou_thresh = std::nan("")}), "pred_iou_thresh"));
  EXPECT_TRUE(contains(error({.stability_score_thresh = std::nan("")}), "stability_score_thresh"));
  EXPECT_TRUE(contains(error({.stability_score_offset = -1}), "stability_score_offset"));
  EXPECT_TRUE(contains(error({.box_nms_thresh = 1.1}), "box_nms_thresh"));
  EXPECT_TRUE(contains(error({.crop_nms_thresh = -0.1}), "crop_nms_thresh"));
  EXPECT_TRUE(contains(error({.crop_n_layers = -1}), "crop_n_layers"));
  EXPECT_TRUE(contains(error({.min_mask_region_area = -1}), "min_mask_region_area"));
  EXPECT_TRUE(contains(error({.min_area = 5, .max_area = 4}), "min_area"));
  EXPECT_TRUE(contains(error({.point_grids = {{{0.5, 1.5}}}}), "coordinates from 0 to 1"));
  EXPECT_TRUE(contains(error({.crop_n_layers = 1, .point_grids = {{{0.5, 0.5}}}}), "a grid for each of 2 layers"));
}

}  // namespace
}  // namespace vitrail::sam
