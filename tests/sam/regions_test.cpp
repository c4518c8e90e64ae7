// SPDX-License-Identifier: Apache-2.0
// Connected regions of random masks against a flood fill.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "vitrail/base/random.h"
#include "vitrail/sam/components_internal.h"
#include "vitrail/sam/polygons.h"
#include "vitrail/sam/small_regions.h"

namespace vitrail::sam {
namespace {

// Masks of all small sizes, from sparse to dense.
std::vector<BinaryMask> random_masks() {
  std::vector<BinaryMask> masks;
  for (int64_t i = 0; i < 120; ++i) {
    BinaryMask mask = make_mask(1 + i % 11, 1 + i / 11 % 7);
    RandomStream random(random_key("mask", static_cast<uint64_t>(i)));
    const double density = 0.2 + 0.6 * static_cast<double>(i) / 120;
    for (uint8_t& pixel : mask.pixels) pixel = random.uniform() < density ? 1 : 0;
    masks.push_back(std::move(mask));
  }
  return masks;
}

// The pixels of each 8-connected region of `value`, in the order of the first pixels.
std::vector<std::vector<size_t>> regions_of(const BinaryMask& mask, uint8_t value) {
  std::vector<bool> seen(mask.pixels.size());
  std::vector<std::vector<size_t>> regions;
  for (size_t start = 0; start < seen.size(); ++start) {
    if (seen[start] || mask.pixels[start] != value) continue;
    seen[start] = true;
    std::vector<size_t> region{start};
    for (size_t next = 0; next < region.size(); ++next) {
      const auto at = static_cast<int64_t>(region[next]);
      const int64_t x = at % mask.width, y = at / mask.width;
      for (int64_t v = std::max<int64_t>(y - 1, 0); v <= std::min(y + 1, mask.height - 1); ++v) {
        for (int64_t u = std::max<int64_t>(x - 1, 0); u <= std::min(x + 1, mask.width - 1); ++u) {
          const auto neighbour = static_cast<size_t>(v * mask.width + u);
          if (seen[neighbour] || mask.pixels[neighbour] != value) continue;
          seen[neighbour] = true;
          region.push_back(neighbour);
        }
      }
    }
    regions.push_back(std::move(region));
  }
  return regions;
}

TEST(Components, AreTheRegionsOfAFloodFill) {
  for (const BinaryMask& mask : random_masks()) {
    for (const uint8_t value : {uint8_t{0}, uint8_t{1}}) {
      const auto regions = regions_of(mask, value);
      const Components got = components_of(mask, value);
      ASSERT_EQ(got.sizes.size(), regions.size());
      std::vector<int32_t> labels(mask.pixels.size());
      for (size_t i = 0; i < regions.size(); ++i) {
        EXPECT_EQ(got.sizes[i], std::ssize(regions[i]));
        for (const size_t pixel : regions[i]) labels[pixel] = static_cast<int32_t>(i + 1);
        int64_t first_block = INT64_MAX;
        for (const size_t pixel : regions[i]) {
          const auto at = static_cast<int64_t>(pixel);
          first_block = std::min(first_block, at / mask.width / 2 * ((mask.width + 1) / 2) + at % mask.width / 2);
        }
        EXPECT_EQ(got.first_blocks[i], first_block);
      }
      EXPECT_EQ(got.labels, labels);
    }
  }
}

TEST(SmallRegions, ThoseOfFewerPixelsThanTheLimitAreRemoved) {
  for (const BinaryMask& mask : random_masks()) {
    for (int64_t limit = 0; limit <= 6; ++limit) {
      BinaryMask filled = mask, cleaned = mask, want_filled = mask, want_cleaned = mask;
      bool any_hole = false, any_island = false;
      for (const auto& hole : regions_of(mask, 0)) {
        if (std::ssize(hole) >= limit) continue;
        any_hole = true;
        for (const size_t pixel : hole) want_filled.pixels[pixel] = 1;
      }
      const auto islands = regions_of(mask, 1);
      const bool all_small =
          std::ranges::all_of(islands, [&](const auto& island) { return std::ssize(island) < limit; });
      for (const auto& island : islands) {
        if (std::ssize(island) >= limit) continue;
        any_island = true;
        for (const size_t pixel : island) want_cleaned.pixels[pixel] = 0;
      }
      EXPECT_EQ(remove_small_regions(filled, limit, SmallRegions::holes), any_hole);
      EXPECT_EQ(filled.pixels, want_filled.pixels);
      EXPECT_EQ(remove_small_regions(cleaned, limit, SmallRegions::islands), any_island);
      if (!all_small || islands.empty()) {
        EXPECT_EQ(cleaned.pixels, want_cleaned.pixels);
        continue;
      }
      // One of the largest remains.
      const auto remaining = regions_of(cleaned, 1);
      ASSERT_EQ(remaining.size(), 1U);
      size_t largest = 0;
      for (const auto& island : islands) largest = std::max(largest, island.size());
      EXPECT_EQ(remaining[0].size(), largest);
      EXPECT_TRUE(std::ranges::find(islands, remaining[0]) != islands.end());
    }
  }
}

TEST(SmallRegions, OfEqualIslandsTheFirstInBlocksOfTwoRowsRemains) {
  // Both have one pixel; that of the second row is in the first block.
  BinaryMask mask{4,
                  2,
                  {0, 0, 0, 1,  //
                   1, 0, 0, 0}};
  EXPECT_TRUE(remove_small_regions(mask, 5, SmallRegions::islands));
  EXPECT_EQ(mask.pixels, (std::vector<uint8_t>{0, 0, 0, 0, 1, 0, 0, 0}));
}

// Inside an odd number of rings: to the right of a pixel's centre, an odd number of sides.
TEST(Polygons, OfAnyMaskGiveItAgain) {
  for (const BinaryMask& mask : random_masks()) {
    BinaryMask drawn = make_mask(mask.width, mask.height);
    int64_t pixels = 0;
    const std::vector<Polygon> polygons = polygons_of(mask);
    for (const Polygon& polygon : polygons) {
      EXPECT_GT(signed_area(polygon.outer), 0);
      std::vector<Ring> rings = polygon.holes;
      for (const Ring& hole : rings) EXPECT_LT(signed_area(hole), 0);
      rings.push_back(polygon.outer);
      for (const Ring& ring : rings) {
        pixels += signed_area(ring);
        for (size_t i = 0; i < ring.size(); ++i) {
          const Corner &a = ring[i], &b = ring[(i + 1) % ring.size()], &c = ring[(i + 2) % ring.size()];
          EXPECT_NE(a.x == b.x, a.y == b.y);  // horizontal or vertical, and not of length 0
          EXPECT_NE(a.x == b.x, b.x == c.x);  // a corner
          if (a.x != b.x) continue;
          for (int64_t y = std::min(a.y, b.y); y < std::max(a.y, b.y); ++y) {
            for (int64_t x = 0; x < a.x; ++x) drawn.row(y)[x] ^= 1;
          }
        }
      }
    }
    EXPECT_EQ(drawn.pixels, mask.pixels);
    EXPECT_EQ(pixels, area(mask));
    EXPECT_EQ(polygons.size(), regions_of(mask, 1).size());
  }
}

}  // namespace
}  // namespace vitrail::sam
