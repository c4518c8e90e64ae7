// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/box_nms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/messages.h"
#include "vitrail/base/random.h"

namespace vitrail::sam {
namespace {

double iou(const PixelBox& a, const PixelBox& b) {
  const auto area = [](const PixelBox& box) { return static_cast<double>((box.x1 - box.x0) * (box.y1 - box.y0)); };
  const double width = static_cast<double>(std::min(a.x1, b.x1) - std::max(a.x0, b.x0));
  const double height = static_cast<double>(std::min(a.y1, b.y1) - std::max(a.y0, b.y0));
  const double common = width > 0 && height > 0 ? width * height : 0;
  return common / (area(a) + area(b) - common);
}

// Scores have few values, so that many are equal.
TEST(BoxNms, NoKeptBoxOverlapsABetterOneAndEachDroppedBoxDoes) {
  for (uint64_t run = 0; run < 60; ++run) {
    RandomStream random(random_key("boxes", run));
    const auto below = [&](double limit) { return static_cast<int64_t>(random.uniform() * limit); };
    std::vector<PixelBox> boxes;
    std::vector<float> scores;
    for (int i = 0; i < 30; ++i) {
      const int64_t x = below(12), y = below(12);
      boxes.push_back({x, y, x + 1 + below(9), y + 1 + below(9)});
      scores.push_back(static_cast<float>(below(6)) / 6);
    }
    const double limit = static_cast<double>(run % 6) / 5;
    const std::vector<size_t> kept = box_nms(boxes, scores, limit);
    const auto place = [&](size_t i) { return std::pair(-scores[i], i); };
    for (size_t k = 1; k < kept.size(); ++k) EXPECT_LT(place(kept[k - 1]), place(kept[k]));
    for (size_t i = 0; i < boxes.size(); ++i) {
      const bool is_kept = std::ranges::find(kept, i) != kept.end();
      const bool overlapped = std::ranges::any_of(kept, [&](size_t better) {
        return place(better) < place(i) &&
               static_cast<double>(static_cast<float>(iou(boxes[better], boxes[i]))) > limit;
      });
      EXPECT_NE(is_kept, overlapped) << i;
    }
  }
}

TEST(BoxNms, AnOverlapOfTheThresholdIsAllowed) {
  const std::vector<PixelBox> boxes{{0, 0, 4, 1}, {2, 0, 4, 1}};  // IoU 1/2
  const std::vector<float> scores{1, 2};
  EXPECT_EQ(box_nms(boxes, scores, 0.5), (std::vector<size_t>{1, 0}));
  EXPECT_EQ(box_nms(boxes, scores, 0.49), (std::vector<size_t>{1}));
  EXPECT_TRUE(box_nms({}, {}, 0.5).empty());
  EXPECT_THROW(box_nms(boxes, std::vector<float>{1}, 0.5), Error);
  const std::vector<PixelBox> empty{{3, 3, 3, 3}, {3, 3, 3, 3}};
  EXPECT_EQ(box_nms(empty, scores, 0), (std::vector<size_t>{1, 0}));
}

}  // namespace
}  // namespace vitrail::sam
