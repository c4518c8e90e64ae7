// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/pca.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"

namespace vitrail::analysis {
namespace {

class PcaGolden : public ::testing::TestWithParam<std::string> {};

// The components are orthonormal, so that 1e-5 of the largest score is a relative tolerance for all of them.
TEST_P(PcaGolden, EqualsScikitLearn) {
  const testing::Golden golden = testing::read_golden(testing::fixture("analysis/pca.safetensors"));
  const auto tensor = [&](const char* name) { return golden[GetParam() + "." + name]; };
  const Tensor features = tensor("features"), components = tensor("components"), variances = tensor("variances");
  const Pca pca = fit_pca(features, components.size(0));
  EXPECT_TRUE(testing::close(pca.mean, tensor("mean"), 1e-5, 1e-5));
  EXPECT_TRUE(testing::close(pca.components, components, 3e-5));
  ASSERT_EQ(static_cast<int64_t>(pca.variances.size()), variances.size(0));
  for (size_t i = 0; i < pca.variances.size(); ++i) {
    EXPECT_NEAR(pca.variances[i], variances.data<float>()[i], 1e-5 * variances.data<float>()[0]) << i;
  }
  EXPECT_TRUE(testing::close(pca_scores(pca, features), tensor("scores"), 3e-4));
}

INSTANTIATE_TEST_SUITE_P(Cases, PcaGolden, ::testing::Values("tall", "wide", "offset", "flat"),
                         [](const auto& info) { return info.param; });

TEST(Pca, TooManyComponentsAndValuesThatAreNotFiniteAreErrors) {
  const Tensor rows = Tensor::randn({4, 6}, 1);
  EXPECT_NO_THROW(fit_pca(rows, 3));
  EXPECT_THROW(fit_pca(rows, 4), Error);
  EXPECT_THROW(fit_pca(rows, 0), Error);
  EXPECT_THROW(fit_pca(Tensor::randn({2, 3, 4}, 1), 1), Error);
  rows.data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(fit_pca(rows, 1), Error);
}

// Features of an image of 4 × 4 patches: the four in the middle are far from the others, along axis 0.
Tensor with_object(float direction, uint64_t seed) {
  const Tensor features = Tensor::randn({4, 4, 8}, seed);
  for (const int64_t patch : {5, 6, 9, 10}) features.data<float>()[patch * 8] += direction * 40;
  return features;
}

bool shown(const PcaMaps& maps, int64_t patch) { return std::isfinite(maps.scores.data<float>()[3 * patch]); }

TEST(PcaMaps, TheForegroundIsTheSideWithFewerPatchesAtTheBorders) {
  for (const float direction : {1.0F, -1.0F}) {
    for (const bool invert : {false, true}) {
      const auto maps = pca_maps({with_object(direction, 1), with_object(direction, 2)},
                                 {.kind = Foreground::Kind::first, .invert = invert});
      ASSERT_EQ(maps.size(), 2u);
      for (const PcaMaps& map : maps) {
        for (int64_t patch = 0; patch < 16; ++patch) {
          const bool object = patch == 5 || patch == 6 || patch == 9 || patch == 10;
          EXPECT_EQ(shown(map, patch), object != invert) << patch;
        }
      }
    }
  }
}

// The share of a side's patches decides: all of the first row's are at the border, and eight of the other twelve.
TEST(PcaMaps, TheForegroundHasTheSmallerShareOfItsPatchesAtTheBorders) {
  for (const float direction : {40.0F, -40.0F}) {
    const Tensor features = Tensor::randn({4, 4, 8}, 1);
    for (int64_t patch = 0; patch < 4; ++patch) features.data<float>()[patch * 8] += direction;
    const PcaMaps map = pca_maps({features}, {.kind = Foreground::Kind::first})[0];
    for (int64_t patch = 0; patch < 16; ++patch) EXPECT_EQ(shown(map, patch), patch >= 4) << patch;
  }
}

// Without differences there is nothing to scale: grey.
TEST(PcaMaps, PatchesThatAreAllAlikeAreGrey) {
  const PcaMaps map = pca_maps({Tensor::full({2, 3, 5}, 2)})[0];
  for (int64_t i = 0; i < 18; ++i) EXPECT_EQ(map.colors.data<float>()[i], 0.5F) << i;
}

TEST(PcaMaps, AThresholdComparesTheScaledFirstComponent) {
  const Tensor line = Tensor::randn({1, 11, 5}, 3);
  for (int64_t i = 0; i < line.numel(); ++i) line.data<float>()[i] *= 1e-3F;
  for (int64_t patch = 0; patch < 11; ++patch) line.data<float>()[patch * 5 + 2] += static_cast<float>(patch);
  for (const bool invert : {false, true}) {
    const PcaMaps map = pca_maps({line}, {.kind = Foreground::Kind::threshold, .threshold = 0.55, .invert = invert})[0];
    for (int64_t patch = 0; patch < 11; ++patch) EXPECT_EQ(shown(map, patch), (patch > 5) != invert) << patch;
  }
  EXPECT_THROW(pca_maps({line}, {.kind = Foreground::Kind::threshold, .threshold = 0.95}), Error) << "one patch";
}

TEST(PcaMaps, ColoursAreScoresScaledOverAllImages) {
  const std::vector<Tensor> features{Tensor::randn({2, 3, 6}, 1), Tensor::randn({4, 2, 6}, 2)};
  const auto maps = pca_maps(features);
  ASSERT_EQ(maps[1].colors.shape(), (Shape{4, 2, 3}));
  for (int64_t channel = 0; channel < 3; ++channel) {
    float low = 1e9F, high = -1e9F;
    for (const PcaMaps& map : maps) {
      for (int64_t i = channel; i < map.scores.numel(); i += 3) {
        low = std::min(low, map.scores.data<float>()[i]);
        high = std::max(high, map.scores.data<float>()[i]);
      }
    }
    for (const PcaMaps& map : maps) {
      for (int64_t i = channel; i < map.scores.numel(); i += 3) {
        EXPECT_NEAR(map.colors.data<float>()[i], (map.scores.data<float>()[i] - low) / (high - low), 1e-6);
      }
    }
  }
  EXPECT_THROW(pca_maps({}), Error);
  EXPECT_THROW(pca_maps({features[0], Tensor::randn({2, 2, 5}, 1)}), Error) << "another width";
}

// Along two axes of known variances; the divisor is n − 1, and the largest element of a component is positive.
TEST(Pca, FindsTheAxesOfTheLargestVariancesFirst) {
  const Tensor rows = Tensor::from<float>({4, 3}, {3, 10, 5, -3, 10, 5, 0, 12, 5, 0, 8, 5});
  const Pca pca = fit_pca(rows, 3);
  EXPECT_TRUE(testing::close(pca.mean, Tensor::from<float>({3}, {0, 10, 5}), 1e-6));
  EXPECT_NEAR(pca.variances[0], 18.0 / 3, 1e-6);
  EXPECT_NEAR(pca.variances[1], 8.0 / 3, 1e-6);
  EXPECT_NEAR(pca.variances[2], 0, 1e-6);
  EXPECT_TRUE(testing::close(pca.components.narrow(0, 0, 2), Tensor::from<float>({2, 3}, {1, 0, 0, 0, 1, 0}), 1e-6));
  EXPECT_TRUE(testing::close(pca_scores(pca, rows).narrow(1, 0, 2),
                             Tensor::from<float>({4, 2}, {3, 0, -3, 0, 0, 2, 0, -2}), 1e-5));
}

TEST(PcaMaps, AForegroundOfFourPatchesIsEnough) {
  const Tensor line = Tensor::randn({1, 11, 5}, 3);
  for (int64_t i = 0; i < line.numel(); ++i) line.data<float>()[i] *= 1e-3F;
  for (int64_t patch = 0; patch < 11; ++patch) line.data<float>()[patch * 5 + 2] += static_cast<float>(patch);
  const auto with = [&](double threshold) {
    return pca_maps({line}, {.kind = Foreground::Kind::threshold, .threshold = threshold})[0];
  };
  const PcaMaps map = with(0.65);
  for (int64_t patch = 0; patch < 11; ++patch) {
    EXPECT_EQ(shown(map, patch), patch >= 7) << patch;
    if (shown(map, patch)) continue;
    for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(map.colors.data<float>()[3 * patch + c], 0) << "the background is black";
  }
  EXPECT_THROW(with(0.75), Error) << "three patches";
}

TEST(Pca, ErrorsNameWhatIsWrong) {
  using testing::contains;
  using testing::error_of;
  const Tensor rows = Tensor::randn({4, 6}, 1);
  EXPECT_TRUE(contains(error_of([&] { fit_pca(rows, 4); }), "pca: expected 1 to 3 components of "));
  EXPECT_TRUE(contains(error_of([&] { fit_pca(rows, 4); }), " features, got 4"));
  EXPECT_TRUE(contains(error_of([&] { fit_pca(rows, -1); }), " features, got -1"));
  EXPECT_TRUE(contains(error_of([] { fit_pca(Tensor::randn({9, 2}, 1), 3); }), "expected 1 to 2 components of "));
  EXPECT_TRUE(contains(error_of([] { fit_pca(Tensor::zeros({0, 2}), 1); }), "expected 1 to 0 components of "));
  EXPECT_TRUE(contains(error_of([] { fit_pca(Tensor::zeros({3}), 1); }), "pca: expected rows [n, D], got "));
  EXPECT_ERROR(error_of([] { fit_pca(Tensor::full({3, 3}, INFINITY), 1); }), "pca", "inf");
  EXPECT_ERROR(error_of([] { pca_maps({}); }), "pca", "none");
  EXPECT_TRUE(contains(error_of([] {
                         pca_maps({Tensor::randn({2, 3, 5}, 1), Tensor::randn({2, 3, 6}, 1)});
                       }),
                       "pca: expected features [rows, columns, 5] of every image, got "));
  EXPECT_TRUE(contains(error_of([] { pca_maps({Tensor::randn({6, 5}, 1)}); }), "features [rows, columns, 5]"));
  const Foreground none{.kind = Foreground::Kind::threshold, .threshold = 0.999};
  EXPECT_ERROR(error_of([&] { pca_maps({Tensor::randn({2, 4, 5}, 1)}, none); }), "pca", "1 (try another threshold)");
}

// Rows of several chunks, the last one short, by the definition of variance.
TEST(Pca, VariancesOfManyRowsHaveTheDivisorOfAllRows) {
  for (const int64_t n : {1023, 1024, 1025, 2600}) {
    const Tensor rows = Tensor::empty({n, 3});
    double sums[3] = {}, squares[3] = {};
    for (int64_t i = 0; i < n; ++i) {
      const double values[3] = {static_cast<double>(i % 2) * 6, static_cast<double>(i / 2 % 2),
                                i < n / 2 ? -50.0 : 50.0};
      for (size_t c = 0; c < 3; ++c) {
        rows.data<float>()[3 * i + static_cast<int64_t>(c)] = static_cast<float>(values[c]);
        sums[c] += values[c];
        squares[c] += values[c] * values[c];
      }
    }
    const Pca pca = fit_pca(rows, 1);
    const auto count = static_cast<double>(n);
    for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(pca.mean.data<float>()[c], sums[c] / count, 1e-4) << n;
    const double variance = (squares[2] - sums[2] * sums[2] / count) / (count - 1);
    EXPECT_NEAR(pca.variances[0], variance, 1e-4 * variance) << n;
    EXPECT_NEAR(pca.components.data<float>()[2], 1, 1e-3);
  }
}

// The element with the largest magnitude is positive, also if it is not the first.
TEST(Pca, TheLargestElementOfAComponentIsPositive) {
  for (const float sign : {1.0F, -1.0F}) {
    const Tensor rows = Tensor::empty({6, 3});
    for (int64_t i = 0; i < 6; ++i) {
      const float t = sign * static_cast<float>(i * i);
      const float values[] = {t, -2 * t, 1.5F * t};
      std::copy_n(values, 3, rows.data<float>() + 3 * i);
    }
    const Pca pca = fit_pca(rows, 1);
    const double length = std::sqrt(1 + 4 + 2.25);
    EXPECT_NEAR(pca.components.data<float>()[0], -1 / length, 1e-6);
    EXPECT_NEAR(pca.components.data<float>()[1], 2 / length, 1e-6);
    EXPECT_NEAR(pca.components.data<float>()[2], -1.5 / length, 1e-6);
    // A vector by itself, and an array of several axes, have scores as the rows.
    const Tensor scores = pca_scores(pca, rows), cube = pca_scores(pca, rows.view({2, 3, 3}));
    ASSERT_EQ(cube.shape(), (Shape{2, 3, 1}));
    EXPECT_TRUE(testing::close(cube.view({6, 1}), scores, 0));
  }
}

// A line of patches at 0 to 10 along one axis, with small differences along the others.
Tensor line_of(const std::vector<float>& places, int64_t rows, int64_t columns) {
  const Tensor line = Tensor::randn({rows, columns, 5}, 3);
  for (int64_t i = 0; i < line.numel(); ++i) line.data<float>()[i] *= 1e-3F;
  for (size_t i = 0; i < places.size(); ++i) line.data<float>()[5 * i + 2] += places[i];
  return line;
}

// The threshold is a share of the range over all images, and the lowest patch is at 0 itself: not above.
TEST(PcaMaps, AThresholdIsAShareOfTheRangeOfAllImages) {
  const std::vector<Tensor> images{line_of({0, 3, 6, 4, 5, 2}, 2, 3), line_of({8, 10, 1, 9}, 4, 1)};
  const std::vector<float> places{0, 3, 6, 4, 5, 2, 8, 10, 1, 9};
  for (const double threshold : {0.0, 0.05, 0.25, 0.55}) {
    for (const bool invert : {false, true}) {
      if (invert && threshold < 0.5) continue;  // fewer than four patches
      const auto maps =
          pca_maps(images, {.kind = Foreground::Kind::threshold, .threshold = threshold, .invert = invert});
      ASSERT_EQ(maps[0].scores.shape(), (Shape{2, 3, 3}));
      ASSERT_EQ(maps[1].scores.shape(), (Shape{4, 1, 3}));
      for (size_t i = 0; i < places.size(); ++i) {
        const bool seen = i < 6 ? shown(maps[0], static_cast<int64_t>(i)) : shown(maps[1], static_cast<int64_t>(i) - 6);
        EXPECT_EQ(seen, (places[i] / 10 > threshold) != invert) << places[i] << " at " << threshold;
      }
    }
  }
}

// An object that touches one border of a grid of two rows or columns has a border everywhere: the share decides, by
// each of the four borders.
TEST(PcaMaps, EachBorderOfAGridCounts) {
  const int64_t height = 5, width = 4;
  for (const int64_t side : {0, 1, 2, 3}) {
    const Tensor features = Tensor::randn({height, width, 6}, 7);
    const auto in_strip = [&](int64_t y, int64_t x) {
      return side == 0 ? y == 0 : side == 1 ? y == height - 1 : side == 2 ? x == 0 : x == width - 1;
    };
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) features.data<float>()[(y * width + x) * 6 + 1] += in_strip(y, x) ? 50 : 0;
    }
    const PcaMaps map = pca_maps({features}, {.kind = Foreground::Kind::first})[0];
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) EXPECT_EQ(shown(map, y * width + x), !in_strip(y, x)) << side;
    }
  }
}

// The colours of the foreground are those of a second analysis of the selected patches alone.
TEST(PcaMaps, TheForegroundHasAnAnalysisOfItsOwn) {
  const Tensor features = with_object(1, 4);
  const PcaMaps map = pca_maps({features}, {.kind = Foreground::Kind::first, .invert = true})[0];
  std::vector<float> selected;
  std::vector<int64_t> patches;
  for (int64_t patch = 0; patch < 16; ++patch) {
    if (patch == 5 || patch == 6 || patch == 9 || patch == 10) continue;
    const float* row = features.data<float>() + 8 * patch;
    selected.insert(selected.end(), row, row + 8);
    patches.push_back(patch);
  }
  const Tensor rows = Tensor::from<float>({12, 8}, selected);
  const Tensor scores = pca_scores(fit_pca(rows, 3), rows);
  for (size_t i = 0; i < patches.size(); ++i) {
    for (int64_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(map.scores.data<float>()[3 * patches[i] + c], scores.data<float>()[3 * static_cast<int64_t>(i) + c],
                  1e-5);
    }
  }
  EXPECT_EQ(Foreground{}.kind, Foreground::Kind::all);
  EXPECT_EQ(Foreground{}.threshold, 0.5);
  EXPECT_FALSE(Foreground{}.invert);
}

}  // namespace
}  // namespace vitrail::analysis
