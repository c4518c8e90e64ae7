// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/augment/mixup.h"

#include <array>
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

// Boxes have the image's aspect ratio and a centre in it; what leaves the image is cut off.
TEST(Mixup, BoxesHaveTheRatioOfTheImageAndReachItsEdges) {
  constexpr int64_t kHeight = 40, kWidth = 10;
  int64_t inside = 0;
  std::array<int64_t, 4> at_edges{};
  for (int step = 0; step < 3000; ++step) {
    const MixupParams mix = draw_mixup(options(0, 1), 1, 0, step, 0, kHeight, kWidth);
    at_edges[0] += mix.top == 0, at_edges[1] += mix.bottom == kHeight;
    at_edges[2] += mix.left == 0, at_edges[3] += mix.right == kWidth;
    if (mix.top == 0 || mix.bottom == kHeight || mix.left == 0 || mix.right == kWidth) continue;
    ++inside;
    // Both sides are parts of the image's, truncated to pixels.
    const int64_t height = mix.bottom - mix.top, width = mix.right - mix.left;
    EXPECT_GE(height, 4 * width);
    EXPECT_LT(height, 4 * width + 4);
  }
  EXPECT_GT(inside, 300);
  for (const int64_t count : at_edges) EXPECT_GT(count, 500);
}

TEST(Mixup, OneOfTheTwoIsAlwaysThatOne) {
  for (int step = 0; step < 200; ++step) {
    EXPECT_FALSE(draw_mixup(options(0.5, 0), 3, 0, step, 0, 8, 8).cut);
    EXPECT_TRUE(draw_mixup(options(0, 0.5), 3, 0, step, 0, 8, 8).cut);
    MixupOptions both = options(0.5, 0.5);
    both.switch_probability = 0;
    EXPECT_FALSE(draw_mixup(both, 3, 0, step, 0, 8, 8).cut);
    both.switch_probability = 1;
    EXPECT_TRUE(draw_mixup(both, 3, 0, step, 0, 8, 8).cut);
    both.probability = 0;
    const MixupParams none = draw_mixup(both, 3, 0, step, 0, 8, 8);
    EXPECT_TRUE(!none.cut && none.lambda == 1 && none.right == 0);
  }
  const MixupParams params;
  EXPECT_EQ(params.lambda, 1);
  EXPECT_FALSE(params.cut);
}

// Each has the concentration of its own: that of 1000 gives nearly a half.
TEST(Mixup, EachHasItsOwnAlpha) {
  MixupOptions both = options(1000, 0.01);
  both.switch_probability = 0;
  double far = 0;
  for (int step = 0; step < 500; ++step)
    far = std::max(far, std::abs(draw_mixup(both, 1, 0, step, 0, 100, 100).lambda - 0.5));
  EXPECT_LT(far, 0.1);
  both.switch_probability = 1;
  int unmixed = 0;  // a λ near 1 has a box without pixels
  for (int step = 0; step < 500; ++step) {
    unmixed += draw_mixup(both, 1, 0, step, 0, 100, 100).lambda > 0.99;
  }
  EXPECT_GT(unmixed, 150);
}

TEST(Mixup, BoxesAreCutOutOfEachChannel) {
  constexpr int64_t kChannels = 3, kHeight = 4, kWidth = 5;
  std::vector<float> one(kChannels * kHeight * kWidth), two(one.size());
  for (size_t i = 0; i < one.size(); ++i) one[i] = static_cast<float>(i), two[i] = static_cast<float>(1000 + i);
  const MixupParams first{.lambda = 0.5, .cut = true, .top = 1, .bottom = 3, .left = 2, .right = 5},
      second{.lambda = 0.5, .cut = true, .top = 0, .bottom = 4, .left = 0, .right = 1};
  std::vector<float> a = one, b = two;
  mix_pair(first, second, kChannels, kHeight, kWidth, a.data(), b.data());
  for (size_t i = 0; i < one.size(); ++i) {
    const size_t x = i % kWidth, y = i / kWidth % kHeight;
    EXPECT_EQ(a[i], y >= 1 && y < 3 && x >= 2 ? two[i] : one[i]) << i;
    EXPECT_EQ(b[i], x == 0 ? one[i] : two[i]) << i;
  }
  a = one;
  mix_pair(first, first, kChannels, kHeight, kWidth, a.data(), a.data());
  EXPECT_EQ(a, one) << "the middle image of an odd batch";
  mix_pair({.lambda = 0.25}, {.lambda = 0.25}, kChannels, kHeight, kWidth, a.data(), a.data());
  EXPECT_EQ(a, one);
  a = one, b = two;
  mix_pair({.lambda = 0.75}, first, kChannels, kHeight, kWidth, a.data(), b.data());
  for (size_t i = 0; i < one.size(); ++i) {
    const size_t x = i % kWidth, y = i / kWidth % kHeight;
    EXPECT_FLOAT_EQ(a[i], 0.75F * one[i] + 0.25F * two[i]);
    EXPECT_EQ(b[i], y >= 1 && y < 3 && x >= 2 ? one[i] : two[i]) << "the other's original";
  }
}

TEST(Mixup, TargetsSumToOne) {
  MixupOptions some = options(1, 0);
  some.classes = 4;
  std::vector<float> row(5, -1);
  mixup_target(some, 0.75, 2, 0, row.data());
  EXPECT_EQ(row, (std::vector<float>{0.25F, 0, 0.75F, 0, -1})) << "not beyond the classes";
  some.label_smoothing = 0.2;
  mixup_target(some, 0.75, 2, 0, row.data());
  const std::vector<float> want{0.25F, 0.05F, 0.65F, 0.05F};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(row[i], want[i], 1e-7) << i;
  mixup_target(some, 0.75, 1, 1, row.data());
  const std::vector<float> same{0.05F, 0.85F, 0.05F, 0.05F};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(row[i], same[i], 1e-7) << i;
}

}  // namespace
}  // namespace vitrail::data
