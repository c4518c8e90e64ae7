// SPDX-License-Identifier: Apache-2.0
// Features of patches and scores of images, held against the papers' formulas in double precision.
#include "vitrail/anomaly/patches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/anomaly/fit.h"

namespace vitrail::anomaly {
namespace {

constexpr double kTolerance = 1e-5;  // some hundred roundings of values around 1

double distance(const Tensor& a, int64_t i, const Tensor& b, int64_t j) {
  double sum = 0;
  for (int64_t c = 0; c < a.size(1); ++c)
    sum += std::pow(double{a.data<float>()[i * a.size(1) + c]} - b.data<float>()[j * a.size(1) + c], 2);
  return std::sqrt(sum);
}

// The row's distances to all of `rows`, the nearest first, with their indices.
std::vector<std::pair<double, int64_t>> sorted_distances(const Tensor& row, int64_t i, const Tensor& rows) {
  std::vector<std::pair<double, int64_t>> all;
  for (int64_t j = 0; j < rows.size(0); ++j) all.emplace_back(distance(row, i, rows, j), j);
  std::ranges::sort(all);
  return all;
}

TEST(PatchFeatures, OfPatchcoreAreMeansOfNeighborhoods) {
  const Tensor grid = Tensor::randn({2, 3, 4, 2}, 1);  // layers, rows, columns, D
  const Tensor features = patch_features(grid, Method::patchcore);
  ASSERT_EQ(features.shape(), (Shape{12, 4}));
  const auto value = [&](int layer, int y, int x, int c) {
    return grid.data<float>()[((layer * 3 + y) * 4 + x) * 2 + c];
  };
  float corner = 0, inside = 0;
  for (int y = 0; y < 2; ++y)
    for (int x = 2; x < 4; ++x) corner += value(1, y, x, 1) / 4;
  for (int y = 0; y < 3; ++y)
    for (int x = 0; x < 3; ++x) inside += value(0, y, x, 0) / 9;
  EXPECT_NEAR(features.data<float>()[3 * 4 + 3], corner, kTolerance);
  EXPECT_NEAR(features.data<float>()[(4 + 1) * 4], inside, kTolerance);
}

TEST(PatchFeatures, OfAnomalyDinoAreUnitVectorsOfAllLayers) {
  const Tensor features = patch_features(Tensor::randn({2, 3, 4, 2}, 1), Method::anomalydino);
  ASSERT_EQ(features.shape(), (Shape{12, 4}));
  const Tensor zero = Tensor::zeros({1, 4});
  for (int64_t i = 0; i < 12; ++i) EXPECT_NEAR(distance(features, i, zero, 0), 1, kTolerance);
}

TEST(PatchSearch, OfAnomalyDinoHasTheMeanOfTheFarthestPatches) {
  const Tensor bank = patch_features(Tensor::randn({5, 8, 6}, 1), Method::anomalydino);
  const Tensor image = patch_features(Tensor::randn({20, 15, 6}, 2), Method::anomalydino);  // 300 patches
  const PatchDistances found = PatchSearch(bank, Method::anomalydino).distances({image});
  std::vector<double> expected;
  for (int64_t i = 0; i < 300; ++i) {
    expected.push_back(std::pow(sorted_distances(image, i, bank)[0].first, 2) / 2);  // 1 − cosine
    EXPECT_NEAR(found.distances[static_cast<size_t>(i)], expected.back(), kTolerance);
  }
  std::ranges::sort(expected, std::greater<>());
  EXPECT_NEAR(found.score, (expected[0] + expected[1] + expected[2]) / 3, kTolerance);
}

TEST(PatchSearch, OfPatchcoreWeighsTheLargestDistance) {
  const Tensor bank = patch_features(Tensor::randn({6, 8, 6}, 1), Method::patchcore);
  const Tensor image = patch_features(Tensor::randn({4, 5, 6}, 2), Method::patchcore);
  const PatchDistances found = PatchSearch(bank, Method::patchcore).distances({image});
  double farthest = 0;
  int64_t patch = 0, nearest = 0;
  for (int64_t i = 0; i < 20; ++i) {
    const auto [shortest, row] = sorted_distances(image, i, bank)[0];
    EXPECT_NEAR(found.distances[static_cast<size_t>(i)], shortest, kTolerance);
    if (shortest > farthest) farthest = shortest, patch = i, nearest = row;
  }
  double sum = 0;
  for (int i = 0; i < 9; ++i) {
    const int64_t neighbor = sorted_distances(bank, nearest, bank)[static_cast<size_t>(i)].second;
    sum += std::exp(distance(image, patch, bank, neighbor));
  }
  EXPECT_NEAR(found.score, (1 - std::exp(farthest) / sum) * farthest, kTolerance);
}

// Image 4, the only one held out, has a patch that the others lack.
TEST(Fit, HasThresholdsOfHeldOutImages) {
  std::vector<Patches> images;
  for (int i = 0; i < 6; ++i)
    images.push_back({Tensor::from<float>({2, 2}, {1, 0, i == 4 ? 0.F : 1.F, i == 4 ? 1.F : 0.F})});
  Bank bank{.options = {.coreset = 1}};
  fit(images, bank);
  EXPECT_EQ(bank.images, 6);
  EXPECT_EQ(bank.patches.size(0), 12);
  ASSERT_TRUE(bank.threshold);
  EXPECT_NEAR(*bank.threshold, 1, kTolerance);  // at right angles
  EXPECT_NEAR(*bank.pixel_threshold, 1, kTolerance);
  images.resize(4);
  Bank small{.options = {.coreset = 0.5}};
  fit(images, small);
  EXPECT_EQ(small.patches.size(0), 4);
  EXPECT_FALSE(small.threshold);
}

// The second patch of each image is background; that of image 4, the only one held out, is like no other.
TEST(Fit, LeavesOutTheBackgroundOfTestedOrOfAllImages) {
  std::vector<Patches> images;
  for (int i = 0; i < 6; ++i)
    images.push_back({Tensor::from<float>({2, 2}, {1, 0, i == 4 ? 0.F : 1.F, i == 4 ? 1.F : 0.F}), {1, 0}});
  for (const auto& [mask, patches] : {std::pair(Mask::test, 12), std::pair(Mask::all, 6)}) {
    Bank bank{.options = {.coreset = 1, .mask = mask}};
    fit(images, bank);
    EXPECT_EQ(bank.patches.size(0), patches);
    EXPECT_NEAR(*bank.threshold, 0, kTolerance);
    EXPECT_NEAR(*bank.pixel_threshold, 0, kTolerance);
  }
  for (Patches& image : images) image.foreground.clear();  // no object was found: all patches count
  Bank bank{.options = {.coreset = 1, .mask = Mask::all}};
  fit(images, bank);
  EXPECT_EQ(bank.patches.size(0), 12);
  EXPECT_NEAR(*bank.threshold, 1, kTolerance);
}

TEST(PatchSearch, BackgroundIsAtNoDistance) {
  for (const Method method : {Method::anomalydino, Method::patchcore}) {
    const Tensor bank = patch_features(Tensor::randn({5, 8, 6}, 1), method);
    Patches image{patch_features(Tensor::randn({4, 5, 6}, 2), method)};
    const PatchDistances whole = PatchSearch(bank, method).distances(image);
    const auto farthest = std::ranges::max_element(whole.distances) - whole.distances.begin();
    image.foreground.assign(20, 1);
    EXPECT_EQ(PatchSearch(bank, method).distances(image).score, whole.score);
    image.foreground[static_cast<size_t>(farthest)] = 0;
    const PatchDistances masked = PatchSearch(bank, method).distances(image);
    EXPECT_LT(masked.score, whole.score);
    for (size_t i = 0; i < 20; ++i)
      EXPECT_EQ(masked.distances[i], static_cast<int64_t>(i) == farthest ? 0 : whole.distances[i]);
  }
}

// The image that is held out is like none of the others, but at its second angle like itself.
TEST(Fit, HoldsOutAllAnglesOfAnImageAndScoresTheFirst) {
  const Patches usual{Tensor::from<float>({1, 2}, {1, 0})}, other{Tensor::from<float>({1, 2}, {0, 1})};
  std::vector<Patches> images(12, usual);
  images[2 * 4] = images[2 * 4 + 1] = other;
  Bank bank{.options = {.coreset = 1, .rotations = 2}};
  fit(images, bank);
  EXPECT_EQ(bank.images, 6);
  EXPECT_EQ(bank.patches.size(0), 12);
  EXPECT_NEAR(*bank.threshold, 1, kTolerance);
  images[2 * 4] = usual;
  fit(images, bank);
  EXPECT_NEAR(*bank.threshold, 0, kTolerance);
  images.pop_back();
  EXPECT_ERROR(testing::error_of([&] { fit(images, bank); }), "images", "11");
}

}  // namespace
}  // namespace vitrail::anomaly
