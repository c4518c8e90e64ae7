// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/mixup.h"

#include <cmath>

#include "tests/data/support.h"
#include "vitrail/base/random.h"

namespace vitrail::data {
namespace {

MixupOptions options(double mixup, double cutmix) {
  MixupOptions result;
  result.mixup_alpha = mixup, result.cutmix_alpha = cutmix, result.classes = 10;
  return result;
}

TEST(Mixup, LambdaIsBetaDistributed) {
  constexpr int kDraws = 40000;
  for (const double alpha : {0.01, 0.2, 0.8, 1.0, 4.0}) {
    double sum = 0, squares = 0;
    for (int step = 0; step < kDraws; ++step) {
      const double lambda = draw_mixup(options(alpha, 0), 1, 0, step, 0, 8, 8).lambda;
      ASSERT_GE(lambda, 0);
      ASSERT_LE(lambda, 1);
      sum += lambda, squares += (lambda - 0.5) * (lambda - 0.5);
    }
    // Beta(α, α): mean ½, variance 1 / (4 (2α + 1)); (λ − ½)² is at most ¼, so its own deviation is below ¼.
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws, variance, 5 * 0.25 / std::sqrt(kDraws)) << alpha;
  }
}

TEST(Mixup, LambdaIsTheFractionOutsideTheBox) {
  double area = 0;
  constexpr int kDraws = 20000;
  for (int step = 0; step < kDraws; ++step) {
    const MixupParams mix = draw_mixup(options(0, 1), 1, 0, step, 0, 32, 24);
    ASSERT_TRUE(mix.cut);
    ASSERT_TRUE(0 <= mix.top && mix.top <= mix.bottom && mix.bottom <= 32);
    ASSERT_TRUE(0 <= mix.left && mix.left <= mix.right && mix.right <= 24);
    const double cut = static_cast<double>((mix.bottom - mix.top) * (mix.right - mix.left)) / (32 * 24);
    EXPECT_DOUBLE_EQ(mix.lambda, 1 - cut);
    area += cut;
  }
  // A box of side s with a uniform centre covers (s − s²/4)² of the unit square on average.  With s = √(1 − λ) and
  // uniform λ that is 0.2903; rounding the sides down to pixels gives slightly less.
  EXPECT_GT(area / kDraws, 0.25);
  EXPECT_LT(area / kDraws, 0.31);
}

TEST(Mixup, ProbabilitiesAreFrequencies) {
  MixupOptions both = options(0.8, 1);
  both.probability = 0.6, both.switch_probability = 0.3;
  constexpr int kDraws = 20000;
  int mixed = 0, cut = 0;
  for (int step = 0; step < kDraws; ++step) {
    const MixupParams mix = draw_mixup(both, 1, 0, step, 0, 224, 224);
    if (mix.cut || mix.lambda != 1) ++mixed;
    if (mix.cut) ++cut;
  }
  EXPECT_NEAR(mixed, 0.6 * kDraws, 5 * std::sqrt(0.24 * kDraws));
  EXPECT_NEAR(cut, 0.18 * kDraws, 5 * std::sqrt(0.15 * kDraws));
}

TEST(Mixup, DrawsPerBatchOrPerImage) {
  MixupOptions batch = options(1, 0), element = batch;
  element.mode = MixupOptions::Mode::element;
  const double first = draw_mixup(batch, 1, 2, 3, 0, 8, 8).lambda;
  EXPECT_EQ(draw_mixup(batch, 1, 2, 3, 5, 8, 8).lambda, first);
  EXPECT_NE(draw_mixup(batch, 1, 2, 4, 0, 8, 8).lambda, first);
  EXPECT_NE(draw_mixup(batch, 1, 3, 3, 0, 8, 8).lambda, first);
  EXPECT_NE(draw_mixup(batch, 2, 2, 3, 0, 8, 8).lambda, first);
  EXPECT_NE(draw_mixup(element, 1, 2, 3, 0, 8, 8).lambda, draw_mixup(element, 1, 2, 3, 5, 8, 8).lambda);
}

TEST(Mixup, EndsAtOffEpoch) {
  MixupOptions some = options(1, 0);
  some.off_epoch = 3;
  EXPECT_TRUE(some.active(2));
  EXPECT_FALSE(some.active(3));
  EXPECT_EQ(draw_mixup(some, 1, 3, 0, 0, 8, 8).lambda, 1);
}

TEST(Mixup, ImagesOfAPairAreMixedWithEachOthersOriginal) {
  const std::vector<float> one{1, 2, 3, 4, 5, 6}, two{10, 20, 30, 40, 50, 60};
  std::vector<float> a = one, b = two;
  mix_pair({.lambda = 0.25}, {.lambda = 0.5}, 1, 2, 3, a.data(), b.data());
  for (int i = 0; i < 6; ++i) {
    EXPECT_FLOAT_EQ(a[i], 0.25f * one[i] + 0.75f * two[i]);
    EXPECT_FLOAT_EQ(b[i], 0.5f * two[i] + 0.5f * one[i]);
  }
  a = one, b = two;
  const MixupParams corner{.lambda = 0.5, .cut = true, .top = 0, .bottom = 1, .left = 1, .right = 3};
  mix_pair(corner, corner, 1, 2, 3, a.data(), b.data());
  EXPECT_EQ(a, (std::vector<float>{1, 20, 30, 4, 5, 6}));
  EXPECT_EQ(b, (std::vector<float>{10, 2, 3, 40, 50, 60}));
  a = one, b = two;
  mix_pair(corner, {.lambda = 0.5}, 1, 2, 3, a.data(), b.data());
  EXPECT_EQ(a, (std::vector<float>{1, 20, 30, 4, 5, 6}));
  EXPECT_FLOAT_EQ(b[1], 0.5f * 20 + 0.5f * 2);
}

// timm's mixup_target: smoothed one-hot rows, mixed.
TEST(Mixup, TargetsAreSmoothedAndMixed) {
  MixupOptions some = options(1, 0);
  some.label_smoothing = 0.1;
  std::vector<float> row(10);
  mixup_target(some, 0.75, 3, 7, row.data());
  EXPECT_FLOAT_EQ(row[0], 0.01f);
  EXPECT_FLOAT_EQ(row[3], 0.75f * 0.91f + 0.25f * 0.01f);
  EXPECT_FLOAT_EQ(row[7], 0.25f * 0.91f + 0.75f * 0.01f);
  mixup_target(some, 0.75, 3, 3, row.data());
  EXPECT_FLOAT_EQ(row[3], 0.91f);
}

TEST(Mixup, OptionsOutOfRangeAreErrors) {
  const auto refused = [](auto change) {
    MixupOptions some = options(1, 1);
    change(some);
    EXPECT_THROW(check(some), Error);
  };
  refused([](MixupOptions& o) { o.mixup_alpha = -1; });
  refused([](MixupOptions& o) { o.probability = 1.5; });
  refused([](MixupOptions& o) { o.switch_probability = std::nan(""); });
  refused([](MixupOptions& o) { o.label_smoothing = 2; });
  refused([](MixupOptions& o) { o.classes = 1; });
  EXPECT_NO_THROW(check(MixupOptions{}));
}

}  // namespace
}  // namespace vitrail::data
