// SPDX-License-Identifier: Apache-2.0
// The JSON of masks, and which mask of a prompt is the best.
#include "vitrail/sam/segment_masks_internal.h"

#include <gtest/gtest.h>

#include "tests/support/sam_fixture.h"
#include "vitrail/sam/mask_overlay.h"

namespace vitrail::sam {
namespace {

// Columns 2 to 5 and rows 1 to 3 of an image of 8 × 6 pixels.
SegmentMask rectangle() {
  BinaryMask pixels = make_mask(8, 6);
  for (int64_t y = 1; y <= 3; ++y) std::fill_n(pixels.row(y) + 2, 4, uint8_t{1});
  return {.rle = encode(pixels),
          .box = bounding_box(pixels),
          .predicted_iou = 0.5F,
          .stability_score = 0.75F,
          .points = {{3, 2.5}},
          .crop = {1, 2, 7, 6}};
}

TEST(SegmentMasks, CocosBoxCountsPixelsAndTheReferencesIsADifference) {
  const SegmentMask mask = rectangle();
  EXPECT_EQ(coco_box(mask), (std::array<int64_t, 4>{2, 1, 4, 3}));
  EXPECT_EQ(difference_box(mask.box), Json::parse("[2, 1, 3, 2]"));
  EXPECT_EQ(coco_box({.rle = encode(make_mask(8, 6))}), (std::array<int64_t, 4>{}));
  BinaryMask pixel = make_mask(8, 6);
  pixel.row(5)[7] = 1;
  EXPECT_EQ(coco_box({.rle = encode(pixel), .box = bounding_box(pixel)}), (std::array<int64_t, 4>{7, 5, 1, 1}));
}

TEST(SegmentMasks, RecordsHaveTheFieldsOfTheReference) {
  const SegmentMask mask = rectangle();
  const Json rle{{"size", {6, 8}}, {"counts", to_coco(mask.rle)}};
  EXPECT_EQ(rle_json(mask.rle), rle);
  const Json everything{{"segmentation", rle},
                        {"area", 12},
                        {"bbox", {2, 1, 3, 2}},
                        {"predicted_iou", 0.5},
                        {"point_coords", Json::parse("[[3.0, 2.5]]")},
                        {"stability_score", 0.75},
                        {"crop_box", {1, 2, 6, 4}}};
  EXPECT_EQ(automatic_record(mask), everything);
  EXPECT_EQ(everything_json("a.png", {{mask, mask}}), (Json{{"image", "a.png"}, {"masks", {everything, everything}}}));
  const Json prompted{{"iou", 0.5}, {"area", 12}, {"bbox", {2, 1, 4, 3}}, {"rle", rle}};
  EXPECT_EQ(prompt_json("a.png", 3, {{mask, mask}}),
            (Json{{"image", "a.png"}, {"prompt", 3}, {"masks", {prompted, prompted}}}));
  EXPECT_EQ(everything_json("a.png", {}).dump(), R"({"image":"a.png","masks":[]})");
}

TEST(SegmentMasks, ARecordOfEverythingKeepsTheMasksFields) {
  AutomaticMask from;
  from.rle = rectangle().rle;
  from.box = {2, 1, 5, 3};
  from.predicted_iou = 0.25F;
  from.stability_score = 0.5F;
  from.point = {4, 1.5};
  from.crop = {0, 1, 8, 5};
  const SegmentMask mask = mask_of(from);
  EXPECT_EQ(mask.rle, from.rle);
  EXPECT_EQ(mask.box, from.box);
  EXPECT_EQ(mask.predicted_iou, 0.25F);
  EXPECT_EQ(mask.stability_score, 0.5F);
  EXPECT_EQ(mask.points, (std::vector<std::array<double, 2>>{{4, 1.5}}));
  EXPECT_EQ(mask.crop, from.crop);
  EXPECT_TRUE(mask.best);
}

TEST(SegmentMasks, TheBestOfAPromptHasTheHighestPredictedIou) {
  const testing::SamFixture fixture = testing::sam_fixture("padded_windows");
  const Predictor predictor(fixture.model);
  const image::Image& photo = fixture.image;
  const ImageEmbedding embedding = predictor.embed(photo);
  const Prompt prompt{.points = {{30, 20, 1}, {5.5, 50, 0}}};
  Masks masks = predictor.predict(embedding, prompt);
  for (size_t best = 0; best < 3; ++best) {
    masks.iou.assign(3, 0.5F);
    masks.iou[best] = 0.75F;
    const std::vector<SegmentMask> got = masks_of(predictor, masks, prompt, photo.width, photo.height);
    ASSERT_EQ(got.size(), 3U);
    for (size_t m = 0; m < 3; ++m) {
      const Tensor logits =
          predictor.image_logits(masks.logits.select(0, static_cast<int64_t>(m)), photo.width, photo.height);
      EXPECT_EQ(got[m].best, m == best);
      EXPECT_EQ(got[m].predicted_iou, masks.iou[m]);
      EXPECT_EQ(got[m].rle, encode(threshold(logits)));
      EXPECT_EQ(got[m].box, bounding_box(threshold(logits)));
      EXPECT_EQ(got[m].stability_score, stability_score(logits, 1));
      EXPECT_EQ(got[m].points, (std::vector<std::array<double, 2>>{{30, 20}, {5.5, 50}}));
      EXPECT_EQ(got[m].crop, (PixelBox{0, 0, photo.width, photo.height}));
    }
    EXPECT_EQ(best_masks_overlay(photo, got, 0.5).pixels,
              mask_overlay(photo, std::vector<Rle>{got[best].rle}, 0.5).pixels);
  }
}

}  // namespace
}  // namespace vitrail::sam
