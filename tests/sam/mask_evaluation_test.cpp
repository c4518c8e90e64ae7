// SPDX-License-Identifier: Apache-2.0
// The measures of mask evaluation against their definitions, written without its code.
#include "vitrail/sam/mask_evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/base/error.h"
#include "vitrail/image/encode.h"
#include "vitrail/sam/instance_datasets_internal.h"

namespace vitrail::sam {
namespace {

using testing::sam_fixture;
using testing::SamFixture;

constexpr const char* kModel = "exact_windows";

// The photograph of the fixture, and a mask of a rectangle in a folder of its name for each of the boxes.
std::filesystem::path make_dataset(const image::Image& photo, const std::vector<PixelBox>& boxes) {
  const auto folder = testing::scratch_folder();
  std::filesystem::create_directories(folder / "photo");
  image::write_png(folder / "photo.png", photo);
  for (size_t i = 0; i < boxes.size(); ++i) {
    image::Image mask = image::make_image(photo.width, photo.height, 1);
    for (int64_t y = boxes[i].y0; y <= boxes[i].y1; ++y) {
      std::fill(mask.row(y) + boxes[i].x0, mask.row(y) + boxes[i].x1 + 1, uint8_t{255});
    }
    image::write_png(folder / "photo" / (std::to_string(i) + ".png"), mask);
  }
  return folder;
}

// Every distance to every pixel outside, and to those beyond the border of the image.
Point farthest_inside(const BinaryMask& mask, int64_t& distance) {
  Point best{};
  distance = 0;
  for (int64_t y = 0; y < mask.height; ++y) {
    for (int64_t x = 0; x < mask.width; ++x) {
      if (mask.row(y)[x] == 0) continue;
      int64_t nearest = std::min({x + 1, y + 1, mask.width - x, mask.height - y});
      for (int64_t v = 0; v < mask.height; ++v) {
        for (int64_t u = 0; u < mask.width; ++u) {
          if (mask.row(v)[u] == 0) nearest = std::min(nearest, std::abs(x - u) + std::abs(y - v));
        }
      }
      if (nearest > distance) {
        distance = nearest;
        best = {static_cast<double>(x), static_cast<double>(y), 1};
      }
    }
  }
  return best;
}

double overlap(const BinaryMask& a, const BinaryMask& b) {
  double both = 0, either = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    both += (a.pixels[i] & b.pixels[i]) != 0;
    either += (a.pixels[i] | b.pixels[i]) != 0;
  }
  return both / either;
}

class Definition {
 public:
  Definition(const Predictor& predictor, const image::Image& photo)
      : predictor_(predictor), embedding_(predictor.embed(photo)) {}

  BinaryMask mask(const Masks& masks, size_t i) const {
    return threshold(
        predictor_.image_logits(masks.logits.select(0, static_cast<int64_t>(i)), embedding_.width, embedding_.height));
  }
  Masks predict(const Prompt& prompt) const { return predictor_.predict(embedding_, prompt); }

  // The mask after two corrections of `predicted`, whose logits are `logits`.
  BinaryMask corrected(Prompt prompt, BinaryMask predicted, Tensor logits, const BinaryMask& target) const {
    prompt.multimask = false;
    for (int click = 0; click < 2; ++click) {
      BinaryMask missing = target, surplus = predicted;
      for (size_t i = 0; i < target.pixels.size(); ++i) {
        missing.pixels[i] &= !predicted.pixels[i];
        surplus.pixels[i] &= !target.pixels[i];
      }
      int64_t in = 0, out = 0;
      Point point = farthest_inside(missing, in), outside = farthest_inside(surplus, out);
      if (out > in) point = {outside.x, outside.y, 0};
      prompt.points.push_back(point);
      prompt.mask_logits = logits;
      const Masks next = predict(prompt);
      predicted = mask(next, 0);
      logits = next.logits.select(0, 0).contiguous();
    }
    return predicted;
  }

 private:
  const Predictor& predictor_;
  ImageEmbedding embedding_;
};

TEST(MaskEvaluation, MeasuresAreThoseOfTheirDefinitions) {
  const SamFixture fixture = sam_fixture(kModel);
  const Predictor predictor(fixture.model);
  const std::vector<PixelBox> boxes{{5, 10, 40, 60}, {20, 3, 30, 12}, {1, 70, 58, 88}};
  const auto dataset = open_instances(make_dataset(fixture.image, boxes));
  const MaskEvaluation result = evaluate_masks(predictor, *dataset);
  const Definition definition(predictor, fixture.image);
  double best = 0, preferred = 0, three = 0, box = 0;
  bool best_is_another = false;
  for (const Rle& rle : dataset->masks(0, fixture.image.width, fixture.image.height)) {
    const BinaryMask target = decode(rle);
    int64_t distance = 0;
    const Prompt click{.points = {farthest_inside(target, distance)}};
    const Masks masks = definition.predict(click);
    const auto chosen = static_cast<size_t>(std::ranges::max_element(masks.iou) - masks.iou.begin());
    std::vector<double> overlaps;
    for (size_t i = 0; i < masks.iou.size(); ++i) overlaps.push_back(overlap(definition.mask(masks, i), target));
    best += std::ranges::max(overlaps);
    preferred += overlaps[chosen];
    best_is_another |= std::ranges::max(overlaps) > overlaps[chosen];
    const Tensor logits = masks.logits.select(0, static_cast<int64_t>(chosen)).contiguous();
    three += overlap(definition.corrected(click, definition.mask(masks, chosen), logits, target), target);
    const PixelBox around = bounding_box(target);
    const Box corners{static_cast<double>(around.x0), static_cast<double>(around.y0),
                      static_cast<double>(around.x1 + 1), static_cast<double>(around.y1 + 1)};
    box += overlap(definition.mask(definition.predict({.box = corners, .multimask = false}), 0), target);
  }
  EXPECT_TRUE(best_is_another) << "the two measures of one click differ here";
  EXPECT_EQ(result.images, 1);
  EXPECT_EQ(result.masks, 3);
  EXPECT_DOUBLE_EQ(result.click_best, best / 3);
  EXPECT_DOUBLE_EQ(result.click, preferred / 3);
  EXPECT_DOUBLE_EQ(result.three_clicks, three / 3);
  EXPECT_DOUBLE_EQ(result.box, box / 3);
}

// Seven images; numbers 1 and 2 cannot be read.
std::filesystem::path make_images(const image::Image& photo) {
  const auto folder = testing::scratch_folder(), one = make_dataset(photo, {{5, 10, 40, 60}});
  for (int i = 0; i < 7; ++i) {
    const std::string name = str("photo", i);
    std::filesystem::copy(one / "photo", folder / name);
    if (i == 1 || i == 2) {
      std::ofstream(folder / (name + ".png")) << "no image";
    } else {
      std::filesystem::copy(one / "photo.png", folder / (name + ".png"));
    }
  }
  return folder;
}

TEST(MaskEvaluation, TakesImagesEvenlyAndSkipsThoseThatCannotBeRead) {
  const SamFixture fixture = sam_fixture(kModel);
  const Predictor predictor(fixture.model);
  const auto dataset = open_instances(make_images(fixture.image));
  ASSERT_EQ(dataset->size(), 7);
  const auto evaluate = [&](int64_t max_images) {
    std::vector<std::string> unreadable;
    std::vector<std::pair<int64_t, int64_t>> progress;
    const MaskEvaluation result =
        evaluate_masks(predictor, *dataset,
                       {.max_images = max_images,
                        .unreadable = [&](const std::string& message) { unreadable.push_back(message); },
                        .progress = [&](int64_t done, int64_t total) { progress.emplace_back(done, total); }});
    EXPECT_EQ(result.unreadable, std::ssize(unreadable));
    EXPECT_EQ(std::ssize(progress), result.images + result.unreadable);
    for (size_t i = 0; i < progress.size(); ++i) {
      EXPECT_EQ(progress[i], std::pair(static_cast<int64_t>(i + 1), std::ssize(progress)));
    }
    EXPECT_EQ(result.masks, result.images);
    return std::pair(result.images, unreadable);
  };
  const auto [images, unreadable] = evaluate(0);
  EXPECT_EQ(images, 5);
  ASSERT_EQ(unreadable.size(), 2U);
  EXPECT_NE(unreadable[0].find("photo1.png"), std::string::npos);
  EXPECT_EQ(evaluate(7).first, 5);
  EXPECT_EQ(evaluate(100).first, 5);
  EXPECT_EQ(evaluate(1).first, 1);  // number 0
  EXPECT_EQ(evaluate(2).first, 2);  // numbers 0 and 3
  EXPECT_EQ(evaluate(3).first, 2);  // numbers 0, 2 and 4
  EXPECT_EQ(evaluate(4).first, 3);  // numbers 0, 1, 3 and 5
  EXPECT_THROW(evaluate_masks(predictor, *dataset), Error);
}

TEST(MaskEvaluation, TheMiddleIsFurthestFromTheOutside) {
  BinaryMask mask = make_mask(9, 7);
  for (int64_t y = 0; y < 7; ++y) std::fill_n(mask.row(y), 5, uint8_t{1});
  const Point middle = middle_of(mask);
  EXPECT_EQ(middle.x, 2);
  EXPECT_EQ(middle.y, 2);  // the border of the image is outside
  EXPECT_EQ(middle.label, 1);
  EXPECT_DOUBLE_EQ(intersection_over_union(mask, mask), 1);
  BinaryMask other = make_mask(9, 7);
  EXPECT_DOUBLE_EQ(intersection_over_union(mask, other), 0);
  EXPECT_DOUBLE_EQ(intersection_over_union(other, other), 1);
  other.row(0)[0] = other.row(0)[8] = 1;
  EXPECT_DOUBLE_EQ(intersection_over_union(mask, other), 1.0 / 36);
}

TEST(MaskEvaluation, MasksOfOtherSizesAreNotCompared) {
  EXPECT_ERROR(testing::error_of([] { intersection_over_union(make_mask(3, 2), make_mask(2, 3)); }), "masks", "2×3");
  EXPECT_ERROR(testing::error_of([] { intersection_over_union(make_mask(3, 2), make_mask(3, 1)); }), "masks", "3×1");
}

TEST(MaskEvaluation, MiddlesAreThoseOfEveryDistance) {
  for (int64_t i = 0; i < 60; ++i) {
    BinaryMask mask = make_mask(1 + i % 13, 1 + i % 8);
    for (size_t pixel = 0; pixel < mask.pixels.size(); ++pixel)
      mask.pixels[pixel] = (pixel * 7919 + static_cast<size_t>(i) * 104729) % 9 < 7 ? 1 : 0;
    int64_t distance = 0;
    const Point want = farthest_inside(mask, distance), got = middle_of(mask);
    EXPECT_EQ(got.x, want.x) << i;
    EXPECT_EQ(got.y, want.y) << i;
    EXPECT_EQ(got.label, 1);
  }
}

// The photograph has 11 × 7 pixels, and 7 × 11 as its EXIF orientation says.
TEST(MaskEvaluation, ImagesAreTurnedWhereAsked) {
  const Predictor predictor(sam_fixture(kModel).model);
  const auto folder = testing::scratch_folder();
  std::filesystem::copy(testing::fixture("image/decode/exif_6.jpg"), folder / "photo.jpg");
  for (const bool exif : {false, true}) {
    image::Image mask = image::make_image(exif ? 7 : 11, exif ? 11 : 7, 1);
    mask.row(3)[2] = 1;
    image::write_png(folder / "photo.png", mask);
    const auto dataset = open_instances(folder);
    EXPECT_EQ(evaluate_masks(predictor, *dataset, {.exif = exif}).masks, 1);
    EXPECT_EQ(testing::error_of([&] { evaluate_masks(predictor, *dataset, {.exif = !exif}); }),
              (folder / "photo.png").string() + (exif ? ": expected a mask of the image's size 11×7, got 7×11"
                                                      : ": expected a mask of the image's size 7×11, got 11×7"));
  }
}

TEST(MaskEvaluation, OfNoMasksIsZero) {
  const Predictor predictor(sam_fixture(kModel).model);
  const auto dataset = parse_coco_instances(R"({"images": [], "annotations": []})", "set.json", "");
  const MaskEvaluation result = evaluate_masks(predictor, *dataset);
  EXPECT_EQ(result.images, 0);
  EXPECT_EQ(result.masks, 0);
  EXPECT_EQ(result.unreadable, 0);
  EXPECT_EQ(result.click_best + result.click + result.three_clicks + result.box, 0);
}

TEST(MaskEvaluation, DefaultsAreAllImagesAsTheyAreStored) {
  const MaskEvaluationOptions options;
  EXPECT_FALSE(options.exif);
  EXPECT_EQ(options.max_images, 0);
  EXPECT_FALSE(options.unreadable);
  EXPECT_FALSE(options.progress);
  const PredictorOptions predictor;
  EXPECT_EQ(predictor.threads, 0);
  EXPECT_EQ(predictor.precision, kernels::Precision::fp32);
  EXPECT_FALSE(predictor.preprocessing.has_value());
}

}  // namespace
}  // namespace vitrail::sam
