// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/pca.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/golden.h"
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

}  // namespace
}  // namespace vitrail::analysis
