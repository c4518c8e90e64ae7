// SPDX-License-Identifier: Apache-2.0
// Masks of polygons against the algorithm of pycocotools, and rings of masks corner by corner.
#include "vitrail/sam/polygon_mask.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/support/messages.h"
#include "vitrail/base/random.h"
#include "vitrail/sam/polygons.h"

namespace vitrail::sam {
namespace {

using testing::error_of;

// rleFrPoly of cocoapi/common/maskApi.c, step by step.
std::vector<uint32_t> coco_counts(const std::vector<double>& xy, int height, int width) {
  const double scale = 5;
  const size_t k = xy.size() / 2;
  std::vector<int> x, y, u, v;
  for (size_t j = 0; j < k; ++j) x.push_back(static_cast<int>(scale * xy[2 * j] + 0.5));
  for (size_t j = 0; j < k; ++j) y.push_back(static_cast<int>(scale * xy[2 * j + 1] + 0.5));
  x.push_back(x[0]);
  y.push_back(y[0]);
  for (size_t j = 0; j < k; ++j) {
    int xs = x[j], xe = x[j + 1], ys = y[j], ye = y[j + 1];
    const int dx = std::abs(xe - xs), dy = std::abs(ys - ye);
    const bool flip = (dx >= dy && xs > xe) || (dx < dy && ys > ye);
    if (flip) std::swap(xs, xe), std::swap(ys, ye);
    const double s = dx >= dy ? static_cast<double>(ye - ys) / dx : static_cast<double>(xe - xs) / dy;
    if (dx >= dy) {
      for (int d = 0; d <= dx; ++d) {
        const int t = flip ? dx - d : d;
        u.push_back(t + xs);
        v.push_back(dx == 0 ? ys : static_cast<int>(ys + s * t + 0.5));
      }
    } else {
      for (int d = 0; d <= dy; ++d) {
        const int t = flip ? dy - d : d;
        v.push_back(t + ys);
        u.push_back(static_cast<int>(xs + s * t + 0.5));
      }
    }
  }
  std::vector<int> a;
  for (size_t j = 1; j < u.size(); ++j) {
    if (u[j] == u[j - 1]) continue;
    const double xd = ((u[j] < u[j - 1] ? u[j] : u[j] - 1) + 0.5) / scale - 0.5;
    if (std::floor(xd) != xd || xd < 0 || xd > width - 1) continue;
    double yd = ((v[j] < v[j - 1] ? v[j] : v[j - 1]) + 0.5) / scale - 0.5;
    yd = yd < 0 ? 0 : yd > height ? height : yd;
    a.push_back(static_cast<int>(xd) * height + static_cast<int>(std::ceil(yd)));
  }
  a.push_back(height * width);
  std::ranges::sort(a);
  int p = 0;
  for (int& position : a) position -= std::exchange(p, position);
  std::vector<uint32_t> b{static_cast<uint32_t>(a[0])};
  for (size_t j = 1; j < a.size();) {
    if (a[j] > 0) {
      b.push_back(static_cast<uint32_t>(a[j++]));
    } else if (++j < a.size()) {
      b.back() += static_cast<uint32_t>(a[j++]);
    }
  }
  return b;
}

TEST(PolygonMask, HasTheRunsOfCocosAlgorithm) {
  for (uint64_t i = 0; i < 300; ++i) {
    RandomStream random(random_key("polygon", i));
    const int width = 3 + static_cast<int>(i % 11), height = 2 + static_cast<int>(i % 7);
    std::vector<double> corners;
    for (uint64_t corner = 0; corner < 3 + i % 5; ++corner) {
      // Every third polygon leaves the image, and every second has corners on the borders of pixels.
      const double reach = i % 3 == 0 ? 1.5 : 1, offset = i % 3 == 0 ? 0.25 : 0;
      for (const int side : {width, height}) {
        const double at = (random.uniform() * reach - offset) * side;
        corners.push_back(i % 2 == 0 ? std::round(at) : at);
      }
    }
    const Rle rle = polygon_mask(corners, width, height, "test");
    EXPECT_EQ(rle.counts, coco_counts(corners, height, width)) << i;
    EXPECT_EQ(rle.width, width);
    EXPECT_EQ(rle.height, height);
  }
}

TEST(PolygonMask, CornersHaveARange) {
  const auto refusal = [](const std::vector<double>& corners) {
    return error_of([&] { polygon_mask(corners, 4, 3, "where"); });
  };
  const std::string few = "where: expected a polygon x, y, … of at least 3 corners, got ";
  EXPECT_EQ(refusal({}), few + "0 numbers");
  EXPECT_EQ(refusal({0, 0, 1, 1}), few + "4 numbers");
  EXPECT_EQ(refusal({0, 0, 1, 1, 2}), few + "5 numbers");
  EXPECT_EQ(refusal({0, 0, 1, 1, 2, 2, 3}), few + "7 numbers");
  const std::string far = "where: expected corners of a polygon in the image of 4×3, got ";
  EXPECT_EQ(refusal({-4.5, 0, 1, 1, 2, 2}), far + "-4.5");
  EXPECT_EQ(refusal({0, -3.5, 1, 1, 2, 2}), far + "-3.5");
  EXPECT_EQ(refusal({0, 0, 8.5, 1, 2, 2}), far + "8.5");
  EXPECT_EQ(refusal({0, 0, 1, 6.5, 2, 2}), far + "6.5");
  EXPECT_EQ(area(polygon_mask(std::vector<double>{-4, -3, 8, -3, 8, 6, -4, 6}, 4, 3, "where")), 12);
}

using Corners = std::vector<std::pair<int64_t, int64_t>>;

Corners corners_of(const Ring& ring) {
  Corners corners;
  for (const Corner& corner : ring) corners.emplace_back(corner.x, corner.y);
  return corners;
}

TEST(Polygons, FollowTheMaskOnTheirRight) {
  const auto pixel = polygons_of({3,
                                  2,
                                  {0, 0, 0,  //
                                   0, 1, 0}});
  ASSERT_EQ(pixel.size(), 1u);
  EXPECT_EQ(corners_of(pixel[0].outer), (Corners{{2, 1}, {2, 2}, {1, 2}, {1, 1}}));
  EXPECT_TRUE(pixel[0].holes.empty());
  const auto diagonal = polygons_of({2,
                                     2,
                                     {1, 0,  //
                                      0, 1}});
  ASSERT_EQ(diagonal.size(), 1u) << "pixels that touch are connected";
  EXPECT_EQ(corners_of(diagonal[0].outer), (Corners{{1, 0}, {1, 1}, {2, 1}, {2, 2}, {1, 2}, {1, 1}, {0, 1}, {0, 0}}));
  const auto ring = polygons_of({4,
                                 3,
                                 {1, 1, 1, 1,  //
                                  1, 0, 0, 1,  //
                                  1, 1, 1, 1}});
  ASSERT_EQ(ring.size(), 1u);
  EXPECT_EQ(corners_of(ring[0].outer), (Corners{{4, 0}, {4, 3}, {0, 3}, {0, 0}}));
  ASSERT_EQ(ring[0].holes.size(), 1u);
  EXPECT_EQ(corners_of(ring[0].holes[0]), (Corners{{3, 2}, {3, 1}, {1, 1}, {1, 2}}));
  EXPECT_EQ(signed_area(ring[0].outer), 12);
  EXPECT_EQ(signed_area(ring[0].holes[0]), -2);
  EXPECT_TRUE(polygons_of(make_mask(3, 2)).empty());
}

TEST(Polygons, AreInTheOrderOfTheirFirstPixels) {
  const auto polygons = polygons_of({5,
                                     3,
                                     {0, 0, 0, 1, 1,  //
                                      1, 0, 0, 0, 0,  //
                                      0, 0, 1, 0, 0}});
  ASSERT_EQ(polygons.size(), 3u);
  EXPECT_EQ(corners_of(polygons[0].outer), (Corners{{5, 0}, {5, 1}, {3, 1}, {3, 0}}));
  EXPECT_EQ(corners_of(polygons[1].outer).front(), (std::pair<int64_t, int64_t>{1, 1}));
  EXPECT_EQ(corners_of(polygons[2].outer).front(), (std::pair<int64_t, int64_t>{3, 2}));
}

}  // namespace
}  // namespace vitrail::sam
