// SPDX-License-Identifier: Apache-2.0
// Which masks of a crop remain, and with which fields, from a predictor whose masks are given.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/sam/automatic.h"

namespace vitrail::sam {
namespace {

using testing::error_of;

constexpr int64_t kImageWidth = 200, kImageHeight = 150;

// The logits of a crop: 5 in a rectangle whose last column and row are x1 and y1, -5 outside it.
Tensor rectangle(const PixelBox& box, int64_t width, int64_t height) {
  Tensor logits = Tensor::full({1, height, width}, -5);
  for (int64_t y = box.y0; y <= box.y1; ++y) {
    for (int64_t x = box.x0; x <= box.x1; ++x) logits.data<float>()[y * width + x] = 5;
  }
  return logits;
}

// Gives `masks` for each prompt of one crop, and none in the others.
class GivenMasks : public CropPredictor {
 public:
  GivenMasks(size_t crop, Masks masks) : crop_(crop), masks_(std::move(masks)) {}

  void begin(const PixelBox& crop) override { crops.push_back(crop); }
  std::vector<Masks> predict(std::span<const Prompt> prompts) const override {
    for (const Prompt& prompt : prompts) {
      EXPECT_EQ(prompt.points.size(), 1u);
      EXPECT_EQ(prompt.points[0].label, 1);
      points.push_back({prompt.points[0].x, prompt.points[0].y});
    }
    batches.push_back(prompts.size());
    return std::vector<Masks>(prompts.size(), crops.size() == crop_ + 1 ? masks_ : Masks{.logits = masks_.logits});
  }
  Tensor image_logits(const Tensor& mask, int64_t width, int64_t height) const override {
    EXPECT_EQ(width, crops.back().x1 - crops.back().x0);
    EXPECT_EQ(height, crops.back().y1 - crops.back().y0);
    return mask;
  }

  std::vector<PixelBox> crops;
  mutable std::vector<std::array<double, 2>> points;
  mutable std::vector<size_t> batches;

 private:
  size_t crop_;
  Masks masks_;
};

const AutomaticOptions kEverything{.points_per_side = 1, .pred_iou_thresh = 0, .stability_score_thresh = 0};

// The crops of layer 1 without overlap have 100×75 pixels each: 1 is on the upper left, 2 below it, 3 on the upper
// right and 4 below it.
std::vector<AutomaticMask> masks_in_crop(size_t crop, const PixelBox& box) {
  AutomaticOptions options = kEverything;
  options.crop_n_layers = 1;
  options.crop_overlap_ratio = 0;
  GivenMasks source(crop, {.logits = rectangle(box, 100, 75), .iou = {0.5F}});
  return automatic_masks(source, kImageWidth, kImageHeight, options);
}

TEST(AutomaticMasks, OfACropAreInPixelsOfTheImage) {
  const std::vector<AutomaticMask> masks = masks_in_crop(4, {30, 40, 60, 50});
  ASSERT_EQ(masks.size(), 1u);
  EXPECT_EQ(masks[0].crop, (PixelBox{100, 75, 200, 150}));
  EXPECT_EQ(masks[0].box, (PixelBox{130, 115, 160, 125}));
  EXPECT_EQ(masks[0].point, (std::array<double, 2>{150, 112.5}));
  EXPECT_EQ(masks[0].predicted_iou, 0.5F);
  EXPECT_EQ(masks[0].stability_score, 1.0F);
  const BinaryMask pixels = decode(masks[0].rle);
  EXPECT_EQ(pixels.width, kImageWidth);
  EXPECT_EQ(pixels.height, kImageHeight);
  EXPECT_EQ(area(pixels), 31 * 11);
  EXPECT_EQ(bounding_box(pixels), masks[0].box);
}

// is_box_near_crop_edge: 20 pixels from a side of the crop that is no side of the image.
TEST(AutomaticMasks, NearTheSideOfACropInsideTheImageAreDropped) {
  const struct {
    size_t crop;
    PixelBox box;
    bool kept;
  } cases[] = {{1, {0, 0, 79, 54}, true},    {1, {0, 0, 80, 54}, false},   {1, {0, 0, 79, 55}, false},
               {1, {30, 30, 99, 40}, false}, {1, {30, 30, 40, 74}, false}, {4, {21, 21, 99, 74}, true},
               {4, {20, 21, 99, 74}, false}, {4, {21, 20, 99, 74}, false}, {4, {0, 30, 40, 40}, false},
               {4, {30, 0, 40, 40}, false},  {3, {21, 0, 99, 54}, true},   {3, {20, 0, 99, 54}, false},
               {3, {21, 0, 99, 55}, false},  {2, {0, 21, 79, 74}, true},   {2, {0, 20, 79, 74}, false},
               {2, {0, 21, 80, 74}, false}};
  for (const auto& [crop, box, kept] : cases) {
    const std::vector<AutomaticMask> masks = masks_in_crop(crop, box);
    EXPECT_EQ(masks.size(), kept ? 1u : 0u)
        << crop << ": " << box.x0 << "," << box.y0 << "," << box.x1 << "," << box.y1;
  }
}

TEST(AutomaticMasks, OfTheWholeImageMayTouchItsSides) {
  GivenMasks source(0, {.logits = rectangle({0, 0, 199, 149}, kImageWidth, kImageHeight), .iou = {0.5F}});
  EXPECT_EQ(automatic_masks(source, kImageWidth, kImageHeight, kEverything).size(), 1u);
}

TEST(AutomaticMasks, HaveMoreThanTheThresholdOfThePredictedIou) {
  for (const auto& [threshold, iou, kept] : {std::tuple{0.5, 0.5F, false},
                                             {0.5, 0.500001F, true},
                                             {0.5, 0.25F, false},
                                             {0.0, -1.0F, true},
                                             {-0.5, -1.0F, true}}) {
    AutomaticOptions options = kEverything;
    options.pred_iou_thresh = threshold;
    GivenMasks source(0, {.logits = rectangle({0, 0, 9, 9}, kImageWidth, kImageHeight), .iou = {iou}});
    EXPECT_EQ(automatic_masks(source, kImageWidth, kImageHeight, options).size(), kept ? 1u : 0u)
        << threshold << " " << iou;
  }
}

// 50 pixels of 5 and 50 of 0.5: half of those above -1 are above 1.
TEST(AutomaticMasks, HaveAtLeastTheThresholdOfTheStabilityScore) {
  Tensor logits = rectangle({0, 0, 9, 9}, kImageWidth, kImageHeight);
  for (int64_t x = 0; x < 10; ++x) {
    for (int64_t y = 0; y < 5; ++y) logits.data<float>()[y * kImageWidth + x] = 0.5F;
  }
  for (const auto& [threshold, offset, score] :
       {std::tuple{0.5, 1.0, 0.5F}, {0.51, 1.0, 0.0F}, {0.9, 0.25, 1.0F}, {0.0, 1.0, 0.5F}, {0.01, 6.0, 0.0F}}) {
    AutomaticOptions options = kEverything;
    options.stability_score_thresh = threshold;
    options.stability_score_offset = offset;
    GivenMasks source(0, {.logits = logits, .iou = {0.5F}});
    const auto masks = automatic_masks(source, kImageWidth, kImageHeight, options);
    ASSERT_EQ(masks.size(), score > 0 ? 1u : 0u) << threshold << " " << offset;
    if (score > 0) {
      EXPECT_EQ(masks[0].stability_score, score);
    }
  }
}

TEST(AutomaticMasks, WithoutThresholdsAnEmptyMaskRemains) {
  GivenMasks source(0, {.logits = Tensor::full({1, kImageHeight, kImageWidth}, -5), .iou = {0.5F}});
  const auto masks = automatic_masks(source, kImageWidth, kImageHeight, kEverything);
  ASSERT_EQ(masks.size(), 1u);
  EXPECT_EQ(masks[0].box, PixelBox{});
  EXPECT_TRUE(std::isnan(masks[0].stability_score));
  AutomaticOptions options = kEverything;
  options.stability_score_thresh = 0.01;
  GivenMasks again(0, {.logits = Tensor::full({1, kImageHeight, kImageWidth}, -5), .iou = {0.5F}});
  EXPECT_TRUE(automatic_masks(again, kImageWidth, kImageHeight, options).empty());
}

TEST(AutomaticMasks, PointsAreThoseOfTheGridsInBatches) {
  AutomaticOptions options = kEverything;
  options.crop_n_layers = 1;
  options.crop_overlap_ratio = 0;
  options.points_per_batch = 2;
  options.point_grids = {{{0, 0.5}, {0.25, 1}, {1, 0}}, {{0.5, 0.2}}, {{0.75, 0.75}}};
  std::vector<std::array<int64_t, 2>> progress;
  options.progress = [&](int64_t done, int64_t total) { progress.push_back({done, total}); };
  GivenMasks source(9, {.logits = rectangle({0, 0, 9, 9}, kImageWidth, kImageHeight), .iou = {0.5F}});
  EXPECT_TRUE(automatic_masks(source, kImageWidth, kImageHeight, options).empty());
  EXPECT_EQ(source.points,
            (std::vector<std::array<double, 2>>{{0, 75}, {50, 150}, {200, 0}, {50, 15}, {50, 15}, {50, 15}, {50, 15}}));
  EXPECT_EQ(source.batches, (std::vector<size_t>{2, 1, 1, 1, 1, 1}));
  EXPECT_EQ(progress, (std::vector<std::array<int64_t, 2>>{{0, 7}, {2, 7}, {3, 7}, {4, 7}, {5, 7}, {6, 7}, {7, 7}}));
}

TEST(AutomaticMasks, ALayerHasFewerPointsByItsFactor) {
  AutomaticOptions options = kEverything;
  options.points_per_side = 7;
  options.crop_n_layers = 2;
  options.crop_n_points_downscale_factor = 2;
  std::vector<std::array<int64_t, 2>> progress;
  options.progress = [&](int64_t done, int64_t total) { progress.push_back({done, total}); };
  GivenMasks source(99, {.logits = rectangle({0, 0, 9, 9}, kImageWidth, kImageHeight), .iou = {0.5F}});
  automatic_masks(source, kImageWidth, kImageHeight, options);
  EXPECT_EQ(source.points.size(), 49u + 4 * 9 + 16 * 1) << "7, 3.5 and 1.75 points a side";
  EXPECT_EQ(progress.front(), (std::array<int64_t, 2>{0, 101}));
  EXPECT_EQ(progress.back(), (std::array<int64_t, 2>{101, 101}));
  EXPECT_EQ(source.batches[0], 49u) << "of up to 64";
}

TEST(AutomaticMasks, RefusalsNameTheOptionItsRangeAndItsValue) {
  const auto refusal = [](AutomaticOptions options) {
    options.points_per_side = std::max<int64_t>(options.points_per_side, 1);
    GivenMasks source(0, {.logits = rectangle({0, 0, 9, 9}, kImageWidth, kImageHeight), .iou = {0.5F}});
    return error_of([&] { automatic_masks(source, kImageWidth, kImageHeight, options); });
  };
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_ERROR(refusal({.points_per_batch = 0}), "points_per_batch", "0");
  EXPECT_ERROR(refusal({.crop_n_points_downscale_factor = 0}), "crop_n_points_downscale_factor", "0");
  EXPECT_ERROR(refusal({.pred_iou_thresh = infinity}), "pred_iou_thresh", "inf");
  EXPECT_ERROR(refusal({.stability_score_thresh = -infinity}), "stability_score_thresh", "-inf");
  EXPECT_ERROR(refusal({.stability_score_offset = infinity}), "stability_score_offset", "inf");
  EXPECT_ERROR(refusal({.stability_score_offset = -0.5}), "stability_score_offset", "-0.5");
  EXPECT_ERROR(refusal({.box_nms_thresh = 1.25}), "box_nms_thresh", "1.25");
  EXPECT_ERROR(refusal({.box_nms_thresh = -0.25}), "box_nms_thresh", "-0.25");
  EXPECT_ERROR(refusal({.crop_nms_thresh = 1.25}), "crop_nms_thresh", "1.25");
  EXPECT_ERROR(refusal({.crop_nms_thresh = -0.25}), "crop_nms_thresh", "-0.25");
  EXPECT_ERROR(refusal({.min_mask_region_area = -1}), "min_mask_region_area", "-1");
  EXPECT_ERROR(refusal({.min_area = 5, .max_area = 4}), "min_area", "5");
  EXPECT_ERROR(refusal({.points_per_side = 1025}), "points_per_side", "1025");
  EXPECT_ERROR(refusal({.points_per_side = 3, .crop_n_layers = 2, .crop_n_points_downscale_factor = 2}),
               "points_per_side", "3");
  EXPECT_ERROR(refusal({.crop_n_layers = 2, .point_grids = std::vector<std::vector<std::array<double, 2>>>(2)}),
               "point_grids", "2");
  EXPECT_ERROR(refusal({.point_grids = {{{1.5, 0}}}}), "point_grids", "1.5");
  EXPECT_ERROR(refusal({.point_grids = {{{0, 1}, {0, -0.5}}}}), "point_grids", "-0.5");
  EXPECT_ERROR(refusal({.point_grids = {{{-2, 0}}}}), "point_grids", "-2");
  EXPECT_ERROR(refusal({.point_grids = {{{0, 3}}}}), "point_grids", "3");
}

TEST(AutomaticMasks, TheEndsOfARangeAreAllowed) {
  GivenMasks source(0, {.logits = rectangle({0, 0, 9, 9}, kImageWidth, kImageHeight), .iou = {0.5F}});
  AutomaticOptions options = kEverything;
  options.points_per_batch = 1;
  options.stability_score_offset = 0;
  options.min_area = options.max_area = 100;
  for (const double threshold : {0.0, 1.0}) {
    options.box_nms_thresh = options.crop_nms_thresh = threshold;
    GivenMasks again = source;
    EXPECT_EQ(automatic_masks(again, kImageWidth, kImageHeight, options).size(), 1u) << threshold;
  }
  options.max_area = 101;
  options.min_area = 101;
  GivenMasks again = source;
  EXPECT_TRUE(automatic_masks(again, kImageWidth, kImageHeight, options).empty());
  options.min_area = 0;
  options.max_area = 99;
  again = source;
  EXPECT_TRUE(automatic_masks(again, kImageWidth, kImageHeight, options).empty());
}

// Masks whose predicted IoU is between the thresholds of both generations.
TEST(AutomaticMasks, OfSam2HaveItsThreshold) {
  const testing::SamFixture fixture = testing::sam_fixture("sam2");
  models::Sam sam = models::load_sam(models::ModelFiles(fixture.model));
  sam.requires_grad(true);  // parameters that may be written to
  sam.requires_grad(false);
  std::string last;
  for (const nn::NamedTensor& parameter : sam.named_parameters())
    if (testing::contains(parameter.name, "iou_prediction_head") && parameter.name.ends_with(".bias"))
      last = parameter.name;
  const std::string layer = last.substr(0, last.size() - std::string("bias").size());
  const Tensor weight = sam.parameter(layer + "weight"), bias = sam.parameter(last);
  weight.copy_(Tensor::zeros(weight.shape()));
  bias.copy_(Tensor::full(bias.shape(), 1.66));  // sigmoid: 0.84
  const Predictor predictor(std::move(sam));
  const auto count = [&](std::optional<double> threshold) {
    const AutomaticOptions options{
        .points_per_side = 2, .pred_iou_thresh = threshold, .stability_score_thresh = 0, .box_nms_thresh = 1};
    return automatic_masks(predictor, fixture.image, options).size();
  };
  EXPECT_GT(count(0), 0U);
  EXPECT_EQ(count({}), count(0));
  EXPECT_EQ(count(kPredIouThresh), 0U);
}

TEST(AutomaticMasks, HaveTheReferencesDefaults) {
  const AutomaticOptions options;
  EXPECT_EQ(options.points_per_side, 32);
  EXPECT_EQ(options.points_per_batch, 64);
  EXPECT_FALSE(options.pred_iou_thresh);
  const auto threshold_of = [](const char* model) {
    return Predictor(models::ModelFiles(testing::sam_fixture(model).model)).pred_iou_thresh();
  };
  EXPECT_EQ(threshold_of("windows"), 0.88);
  EXPECT_EQ(threshold_of("sam2"), 0.8);
  EXPECT_EQ(options.stability_score_thresh, 0.95);
  EXPECT_EQ(options.stability_score_offset, 1);
  EXPECT_EQ(options.box_nms_thresh, 0.7);
  EXPECT_EQ(options.crop_n_layers, 0);
  EXPECT_EQ(options.crop_nms_thresh, 0.7);
  EXPECT_EQ(options.crop_overlap_ratio, 512.0 / 1500);
  EXPECT_EQ(options.crop_n_points_downscale_factor, 1);
  EXPECT_EQ(options.min_mask_region_area, 0);
  EXPECT_EQ(options.min_area, 0);
  EXPECT_EQ(options.max_area, std::numeric_limits<int64_t>::max());
}

// A cleaned mask may overlap another one by the larger of both thresholds.
TEST(AutomaticMasks, CleanedOnesAreSuppressedByTheLargerThreshold) {
  Tensor logits = Tensor::full({2, kImageHeight, kImageWidth}, -5);
  for (int64_t m = 0; m < 2; ++m) {  // boxes of 41 × 41, 10 columns apart: an overlap of 0.6
    logits.select(0, m).copy_(rectangle({50 + 10 * m, 50, 90 + 10 * m, 90}, kImageWidth, kImageHeight).select(0, 0));
  }
  logits.data<float>()[2 * kImageWidth + 2] = 5;  // an island of the first one
  for (const auto& [box_nms, crop_nms, masks] : {std::tuple{0.5, 0.7, 2u}, {0.7, 0.5, 2u}, {0.5, 0.5, 1u}}) {
    AutomaticOptions options = kEverything;
    options.min_mask_region_area = 5;
    options.box_nms_thresh = box_nms;
    options.crop_nms_thresh = crop_nms;
    GivenMasks source(0, {.logits = logits, .iou = {0.5F, 0.4F}});
    EXPECT_EQ(automatic_masks(source, kImageWidth, kImageHeight, options).size(), masks) << box_nms << " " << crop_nms;
  }
}

}  // namespace
}  // namespace vitrail::sam
