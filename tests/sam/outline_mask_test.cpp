// SPDX-License-Identifier: Apache-2.0
// Overlaps of masks, counted pixel by pixel.
#include "vitrail/sam/outline_mask.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail::sam {
namespace {

// A rectangle; both ends belong to it.
BinaryMask rectangle(const PixelBox& box) {
  BinaryMask mask = make_mask(9, 7);
  for (int64_t y = box.y0; y <= box.y1; ++y) {
    for (int64_t x = box.x0; x <= box.x1; ++x) mask.row(y)[x] = 1;
  }
  return mask;
}

double counted_overlap(const BinaryMask& a, const BinaryMask& b, bool crowd) {
  double both = 0, any = 0, own = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    both += a.pixels[i] & b.pixels[i];
    any += a.pixels[i] | b.pixels[i];
    own += a.pixels[i];
  }
  return both == 0 ? 0 : both / (crowd ? own : any);
}

TEST(ComparedMask, OverlapsAreThoseOfThePixels) {
  const PixelBox boxes[] = {{0, 0, 8, 6}, {0, 0, 0, 0}, {8, 6, 8, 6}, {2, 1, 5, 4},
                            {3, 0, 3, 6}, {4, 3, 8, 3}, {1, 1, 0, 0}};
  for (const PixelBox& a : boxes) {
    for (const PixelBox& b : boxes) {
      for (const bool crowd : {false, true}) {
        const BinaryMask own = rectangle(a), truth = rectangle(b);
        EXPECT_EQ(ComparedMask(encode(own)).overlap(ComparedMask(encode(truth)), crowd),
                  counted_overlap(own, truth, crowd));
      }
    }
  }
}

TEST(ComparedMask, RefusesMasksOfOtherSizes) {
  const ComparedMask a(encode(make_mask(2, 3))), b(encode(make_mask(3, 2)));
  EXPECT_ERROR(testing::error_of([&] { static_cast<void>(a.overlap(b, false)); }), "masks", "2×3");
}

TEST(OutlineMask, IsTheUnionOfPolygonsOrTheRuns) {
  const data::ObjectOutline squares{.polygons = {{0, 0, 2, 0, 2, 2, 0, 2}, {1, 1, 4, 1, 4, 3, 1, 3}}};
  EXPECT_EQ(area(outline_mask(squares, 5, 4, "set")), 4 + 6 - 1);
  const data::ObjectOutline runs{.runs = {3, 10, 7}};
  EXPECT_EQ(outline_mask(runs, 5, 4, "set").counts, runs.runs);
  EXPECT_EQ(outline_mask({.coco_runs = to_coco({5, 4, runs.runs})}, 5, 4, "set").counts, runs.runs);
  EXPECT_ERROR(testing::error_of([&] { outline_mask(runs, 5, 5, "set"); }), "set", "20");
}

}  // namespace
}  // namespace vitrail::sam
