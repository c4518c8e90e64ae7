// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/mae/patch_masks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/messages.h"
#include "vitrail/nn/dropout.h"

namespace vitrail::models {
namespace {

using testing::error_of;

// int(N · (1 − ratio)) of the authors' code, which is in double precision.
TEST(PatchMasks, KeepTheAuthorsNumberOfPatches) {
  EXPECT_EQ(num_kept_patches(196, 0.75), 49);
  EXPECT_EQ(num_kept_patches(64, 0.75), 16);
  EXPECT_EQ(num_kept_patches(10, 0.9), 1);
  EXPECT_EQ(num_kept_patches(30, 0.9), 2) << "30 · (1 − 0.9) is below 3";
  EXPECT_EQ(num_kept_patches(2, 0.75), 1);
  EXPECT_EQ(num_kept_patches(2, 0.25), 1);
}

TEST(PatchMasks, RefuseRatiosThatKeepOrMaskAll) {
  for (const double ratio : {0.0, 1.0, -0.5, std::nan("")}) {
    EXPECT_EQ(error_of([&] { num_kept_patches(196, ratio); }),
              str("mask_ratio: expected a value between 0 and 1, got ", ratio));
  }
  EXPECT_EQ(error_of([] { num_kept_patches(1, 0.5); }),
            "mask_ratio: expected a value that masks one of 1 patches, got 0.5");
  EXPECT_EQ(error_of([] { draw_kept_patches(1, 2, {3}, 1, 0.5); }),
            "mask_ratio: expected a value that masks one of 1 patches, got 0.5");
}

TEST(PatchMasks, AreDifferentPatchesInAscendingOrder) {
  const PatchIndices kept = draw_kept_patches(1, 2, {7, 8, 9}, 36, 0.75);
  ASSERT_EQ(kept.size(), 3u);
  for (const std::vector<int64_t>& patches : kept) {
    ASSERT_EQ(patches.size(), 9u);
    EXPECT_TRUE(std::ranges::is_sorted(patches));
    EXPECT_EQ(std::ranges::adjacent_find(patches), patches.end());
    EXPECT_GE(patches.front(), 0);
    EXPECT_LT(patches.back(), 36);
  }
}

TEST(PatchMasks, AreAFunctionOfSeedEpochAndImage) {
  const PatchIndices kept = draw_kept_patches(1, 2, {7, 8, 9}, 36, 0.75);
  EXPECT_EQ(draw_kept_patches(1, 2, {9, 7}, 36, 0.75), (PatchIndices{kept[2], kept[0]})) << "not of the batch";
  {
    const nn::RandomScope training(5, 6, {1, 2, 3});
    EXPECT_EQ(draw_kept_patches(1, 2, {8}, 36, 0.75), (PatchIndices{kept[1]})) << "not of the step";
    EXPECT_EQ(nn::RandomScope::current().seed, 5u);
  }
  EXPECT_NE(kept[0], kept[1]);
  EXPECT_NE(draw_kept_patches(2, 2, {7}, 36, 0.75)[0], kept[0]);
  EXPECT_NE(draw_kept_patches(1, 3, {7}, 36, 0.75)[0], kept[0]);
}

// Each patch is kept by a quarter of the draws, with a standard deviation of √(n · 0.25 · 0.75); and each pair of
// patches by 4/16 · 3/15 of them.  The draws are fixed, so a bound of 4 deviations for all cells cannot fail by chance
// later on.
TEST(PatchMasks, KeepEachPatchAndEachPairEquallyOften) {
  constexpr int64_t kImages = 500, kEpochs = 10, kPatches = 16;
  std::vector<int64_t> images(kImages);
  std::iota(images.begin(), images.end(), 0);
  std::vector<double> singles(kPatches), pairs(kPatches * kPatches);
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (const auto& kept : draw_kept_patches(3, epoch, images, kPatches, 0.75)) {
      for (const int64_t a : kept) {
        ++singles[static_cast<size_t>(a)];
        for (const int64_t b : kept) pairs[static_cast<size_t>(a * kPatches + b)] += a < b;
      }
    }
  }
  const auto expect_share = [](double count, double share) {
    constexpr double kDraws = kImages * kEpochs;
    EXPECT_NEAR(count, kDraws * share, 4 * std::sqrt(kDraws * share * (1 - share)));
  };
  for (const double count : singles) expect_share(count, 0.25);
  for (int64_t a = 0; a < kPatches; ++a) {
    for (int64_t b = a + 1; b < kPatches; ++b) expect_share(pairs[static_cast<size_t>(a * kPatches + b)], 0.05);
  }
}

}  // namespace
}  // namespace vitrail::models
