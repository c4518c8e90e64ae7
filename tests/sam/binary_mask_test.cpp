// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/binary_mask.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/random.h"
#include "vitrail/sam/rle.h"

namespace vitrail::sam {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(BinaryMask, APixelIsInTheObjectAboveTheThreshold) {
  const Tensor logits = Tensor::from<float>({2, 3}, {0, 1e-30F, -1, 0.5F, kNan, 0.75F});
  EXPECT_EQ(threshold(logits).pixels, (std::vector<uint8_t>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(threshold(logits, 0.5F).pixels, (std::vector<uint8_t>{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(threshold(logits).width, 3);
  EXPECT_EQ(threshold(logits).height, 2);
  EXPECT_THROW(threshold(Tensor::zeros({4})), Error);
  EXPECT_THROW(threshold(Tensor::zeros({2, 2}, DType::f64)), Error);
}

TEST(BinaryMask, TheStabilityScoreComparesBothThresholdsStrictly) {
  const Tensor logits = Tensor::from<float>({1, 5}, {-1, -0.5F, 1, 1.5F, 2});
  EXPECT_EQ(stability_score(logits, 1), 2.0F / 4);  // 1 and −1 are not above their limits
  EXPECT_EQ(stability_score(logits, 0), 1);
  EXPECT_EQ(stability_score(logits, 3), 0);
  EXPECT_TRUE(std::isnan(stability_score(Tensor::full({1, 2}, -5), 1)));
}

// Larger than a thread's share.
TEST(BinaryMask, CountsOfALargeMaskAreExact) {
  const int64_t side = 400;
  Tensor logits = Tensor::full({side, side}, -1);
  for (int64_t i = 0; i < side * side; i += 3) logits.data<float>()[i] = 2;
  const int64_t above = (side * side + 2) / 3;
  EXPECT_EQ(area(threshold(logits)), above);
  EXPECT_EQ(stability_score(logits, 1.5F), static_cast<float>(above) / static_cast<float>(side * side));
}

// The box against every pixel, and the runs against the pixels column by column.
TEST(BinaryMask, BoxesAndRunsAreThoseOfTheirPixels) {
  for (int64_t i = 0; i < 200; ++i) {
    BinaryMask mask = make_mask(1 + i % 9, 1 + i / 9 % 8);
    RandomStream random(random_key("mask", static_cast<uint64_t>(i)));
    for (uint8_t& pixel : mask.pixels) pixel = random.uniform() < 0.2 ? 1 : 0;
    PixelBox box{mask.width, mask.height, -1, -1};
    int64_t pixels = 0;
    std::vector<uint32_t> counts{0};
    uint8_t last = 0;
    for (int64_t x = 0; x < mask.width; ++x) {
      for (int64_t y = 0; y < mask.height; ++y) {
        const uint8_t pixel = mask.row(y)[x];
        if (pixel != last) counts.push_back(0);
        ++counts.back();
        last = pixel;
        if (pixel == 0) continue;
        ++pixels;
        box = {std::min(box.x0, x), std::min(box.y0, y), std::max(box.x1, x), std::max(box.y1, y)};
      }
    }
    EXPECT_EQ(bounding_box(mask), pixels == 0 ? PixelBox{} : box);
    EXPECT_EQ(area(mask), pixels);
    const Rle rle = encode(mask);
    EXPECT_EQ(rle.counts, counts);
    EXPECT_EQ(area(rle), pixels);
    EXPECT_EQ(decode(rle).pixels, mask.pixels);
    EXPECT_EQ(from_coco(to_coco(rle), mask.width, mask.height, "text"), rle);
  }
}

// Differences of all signs and lengths of text.
TEST(Rle, TextsOfLongRunsAreReadAgain) {
  for (const std::vector<uint32_t>& counts : {std::vector<uint32_t>{0, 15, 16, 17},
                                              {1, 31, 32, 33, 1},
                                              {511, 512, 1, 100000, 2, 3},
                                              {1000000},
                                              {0, 70000, 0x7fffffU, 1, 1},
                                              {5, 4, 3, 2, 1, 40000, 1, 1}}) {
    int64_t total = 0;
    for (const uint32_t count : counts) total += count;
    const Rle rle{1, total, counts};
    EXPECT_EQ(from_coco(to_coco(rle), 1, total, "text"), rle);
    EXPECT_THROW(from_coco(to_coco(rle), 1, total + 1, "text"), Error);
    EXPECT_THROW(from_coco(to_coco(rle), 1, total - 1, "text"), Error);
  }
}

TEST(Uncrop, FitsExactlyOrIsAnError) {
  const BinaryMask mask{2, 1, {1, 1}};
  EXPECT_EQ(uncrop(mask, 0, 0, 2, 1).pixels, mask.pixels);
  EXPECT_EQ(uncrop(mask, 1, 1, 3, 2).pixels, (std::vector<uint8_t>{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(uncrop(mask, 0, 1, 3, 2).pixels, (std::vector<uint8_t>{0, 0, 0, 1, 1, 0}));
  for (const auto& [x, y] : {std::pair(2, 1), std::pair(1, 2), std::pair(-1, 0), std::pair(0, -1)}) {
    EXPECT_THROW(uncrop(mask, x, y, 3, 2), Error) << x << "," << y;
  }
}

TEST(BinaryMask, MessagesNameTheShape) {
  EXPECT_ERROR(testing::error_of([] { threshold(Tensor::zeros({4})); }), "mask", "[4] f32");
  EXPECT_ERROR(testing::error_of([] { stability_score(Tensor::zeros({2, 3}, DType::f64), 1); }), "mask", "[2, 3] f64");
  EXPECT_ERROR(testing::error_of([] { uncrop({2, 1, {1, 1}}, 4, 1, 5, 3); }), "uncrop", "2×1 at 4,1");
}

TEST(Rle, MessagesNameThePlaceAndTheSize) {
  const auto refusal = [](const std::string& text) {
    return testing::error_of([&] { from_coco(text, 5, 3, "where"); });
  };
  EXPECT_ERROR(refusal("7"), "where", "7");
  EXPECT_ERROR(refusal("`"), "where", "the end of the text");
  EXPECT_ERROR(refusal("`0"), "where", "16");
  EXPECT_ERROR(refusal("/"), "where", "byte 47");
  EXPECT_ERROR(refusal("p"), "where", "byte 112");
  EXPECT_ERROR(refusal("O"), "where", "-1");
  EXPECT_ERROR(testing::error_of([] { decode({4, 3, {5, 6}}); }), "decode", "11");
  EXPECT_ERROR(testing::error_of([] { decode({65536, 65536, {}}); }), "decode", "65536×65536");
  EXPECT_ERROR(testing::error_of([] { decode({-1, 3, {}}); }), "decode", "-1×3");
  EXPECT_ERROR(testing::error_of([] { from_coco("0", 3, -1, "where"); }), "where", "3×-1");
  // The largest mask has 2^32 - 1 pixels, all outside.
  const Rle largest = from_coco(to_coco({65537, 65535, {4294967295}}), 65537, 65535, "where");
  EXPECT_EQ(largest.counts, (std::vector<uint32_t>{4294967295}));
  const Rle whole{65537, 65535, {0, 4294967295}};
  EXPECT_EQ(area(from_coco(to_coco(whole), 65537, 65535, "where")), 4294967295);
}

// From the third run on, the text has differences to the run before the last: 5, 2, 4, then 7 - 2 and 1 - 4.
TEST(Rle, TheTextHasDifferencesFromTheFourthRunOn) {
  EXPECT_EQ(to_coco({1, 19, {5, 2, 4, 7, 1}}), "5245M");
  EXPECT_EQ(from_coco("5245M", 1, 19, "where").counts, (std::vector<uint32_t>{5, 2, 4, 7, 1}));
  EXPECT_EQ(to_coco({1, 15, {15}}), "?");
  EXPECT_EQ(to_coco({1, 16, {16}}), "`0");
  EXPECT_TRUE(encode(make_mask(0, 3)).counts.empty());
  EXPECT_TRUE(decode({3, 0, {}}).pixels.empty());
  EXPECT_EQ(area(Rle{4, 3, {1, 2, 3, 4, 2}}), 6);
}

}  // namespace
}  // namespace vitrail::sam
