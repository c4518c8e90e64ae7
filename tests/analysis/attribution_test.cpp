// SPDX-License-Identifier: Apache-2.0
// Attributions of scores whose attribution is known.  tests/pipeline/attribution_test.cpp has those of models.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/analysis/attention_relevance.h"
#include "vitrail/analysis/patch_removal.h"

namespace vitrail::analysis {
namespace {

const Shape kShape{1, 2, 5, 7};
const PatchGrid kPatches{{2, 2}, {2, 3}};  // a row and a column of pixels are in no patch

template <class Function>
Tensor mapped(const Tensor& x, const Function& function) {
  const Tensor result = Tensor::empty(x.shape());
  for (int64_t i = 0; i < x.numel(); ++i) result.data<float>()[i] = function(x.data<float>()[i], i);
  return result;
}

float at(const Tensor& x, int64_t channel, int64_t row, int64_t column) {
  return x.data<float>()[(channel * x.size(2) + row) * x.size(3) + column];
}

// y = Σ x²: the gradient 2x is linear between baseline and image, so trapezoids are exact.
TEST(IntegratedGradients, OfAQuadraticScoreAddUpToItsDifference) {
  const Tensor image = Tensor::randn(kShape, 1), baseline = Tensor::randn(kShape, 2);
  const GradientAt gradient = [](const Tensor& x) { return mapped(x, [](float v, int64_t) { return 2 * v; }); };
  const Tensor want = mapped(image, [&](float v, int64_t i) {
    const float from = baseline.data<float>()[i];
    return v * v - from * from;
  });
  for (const int64_t steps : {1, 2, 50}) {
    int64_t passes = 0;
    const GradientAt counted = [&](const Tensor& x) { return ++passes, gradient(x); };
    EXPECT_TRUE(testing::close(integrated_gradients(image, baseline, counted, steps), want, 1e-5));
    EXPECT_EQ(passes, steps + 1);
  }
}

TEST(SmoothGrad, IsTheMeanOverDrawsOfItsSeed) {
  const Tensor image = mapped(Tensor::zeros(kShape), [](float, int64_t i) { return static_cast<float>(i); });
  const auto deviation = static_cast<float>(0.5 * static_cast<double>(image.numel() - 1));
  const GradientAt identity = [](const Tensor& x) { return x; };
  const Tensor first = Tensor::randn(kShape, 7), second = Tensor::randn(kShape, 8);
  const Tensor want = mapped(image, [&](float v, int64_t i) {
    return v + deviation * (first.data<float>()[i] + second.data<float>()[i]) / 2;
  });
  EXPECT_TRUE(testing::close(smooth_grad(image, identity, {.draws = 2, .noise = 0.5, .seed = 7}), want, 1e-4));
}

TEST(SumOverPatches, LeavesPixelsOutsideThePatchesOut) {
  const Tensor image = Tensor::randn(kShape, 1), sums = sum_over_patches(image, kPatches);
  ASSERT_EQ(sums.shape(), (Shape{2, 2}));
  for (int64_t patch = 0; patch < 4; ++patch) {
    double want = 0;
    for (int64_t i = 0; i < 2 * 2 * 3; ++i)
      want += double{at(image, i / 6, patch / 2 * 2 + i % 6 / 3, patch % 2 * 3 + i % 3)};
    EXPECT_NEAR(sums.data<float>()[patch], want, 1e-5) << patch;
  }
}

// A score that is linear in the pixels, for more patches than a pass has images.
TEST(LeaveOnePatchOut, OfALinearScoreIsThePatchsShare) {
  const Shape shape{1, 1, 10, 8};
  const PatchGrid patches{{5, 4}, {2, 2}};
  ASSERT_GT(patches.count(), kImagesPerPass);
  const Tensor image = Tensor::randn(shape, 1), baseline = Tensor::randn(shape, 2), slope = Tensor::randn(shape, 3);
  const ScoresOf score = [&](const Tensor& images) {
    EXPECT_LE(images.size(0), kImagesPerPass);
    std::vector<float> result(static_cast<size_t>(images.size(0)));
    for (int64_t i = 0; i < images.numel(); ++i)
      result[static_cast<size_t>(i / slope.numel())] +=
          images.data<float>()[i] * slope.data<float>()[i % slope.numel()];
    return result;
  };
  const Tensor shares =
      mapped(slope, [&](float v, int64_t i) { return v * (image.data<float>()[i] - baseline.data<float>()[i]); });
  const Tensor want = sum_over_patches(shares, patches);
  EXPECT_TRUE(testing::close(leave_one_patch_out(image, baseline, patches, score), want, 1e-4));
}

TEST(DescendingPatches, OfEqualValuesBeginWithTheFirst) {
  EXPECT_EQ(descending_patches(Tensor::from<float>({2, 3}, {1, 3, 1, -2, 3, 0})),
            (std::vector<int64_t>{1, 4, 0, 2, 5, 3}));
}

// One channel of 1 × 4 pixels, a patch each; the score is the sum.
TEST(PatchCurve, HasTheScoresAfterEachPatchAndTheAreaBelow) {
  const Tensor from = Tensor::from<float>({1, 1, 1, 4}, {1, 2, 3, 4}), to = Tensor::zeros({1, 1, 1, 4});
  const ScoresOf sum = [](const Tensor& images) {
    std::vector<float> result(static_cast<size_t>(images.size(0)));
    for (int64_t i = 0; i < images.numel(); ++i) result[static_cast<size_t>(i / 4)] += images.data<float>()[i];
    return result;
  };
  const PatchCurve curve = patch_curve(from, to, {3, 0, 2, 1}, {{1, 4}, {1, 1}}, sum);
  EXPECT_EQ(curve.scores, (std::vector<float>{10, 6, 5, 2, 0}));
  EXPECT_DOUBLE_EQ(curve.area, (5 + 6 + 5 + 2) / 4.0);
  EXPECT_EQ(from.data<float>()[3], 4) << "the image stays as it is";
}

TEST(Baselines, AreTheMeanOfEachChannelAndTheBlurredImage) {
  const Tensor image = Tensor::from<float>({1, 2, 1, 2}, {1, 3, -4, -2});
  EXPECT_TRUE(testing::close(mean_color(image), Tensor::from<float>({1, 2, 1, 2}, {2, 2, -3, -3}), 0));
  const Tensor flat = Tensor::full({1, 1, 3, 4}, 2.5);
  EXPECT_TRUE(testing::close(blurred(flat), flat, 1e-6)) << "the border's pixels are repeated";
}

// The taps of RISE's kernel on both axes.
TEST(Baselines, ABlurredPixelIsAGaussianOfElevenPixels) {
  double total = 0;
  for (int distance = -5; distance <= 5; ++distance) total += std::exp(-0.02 * distance * distance);
  for (const Shape& shape : {Shape{1, 1, 1, 15}, Shape{1, 1, 15, 1}}) {
    const Tensor image = Tensor::zeros(shape);
    image.data<float>()[7] = 1;
    const Tensor got = blurred(image);
    for (int i = 0; i < 15; ++i) {
      const int distance = std::abs(i - 7);
      const double want = distance <= 5 ? std::exp(-0.02 * distance * distance) / total : 0;
      EXPECT_NEAR(got.data<float>()[i], want, 1e-6) << i;
    }
  }
}

// Two heads of two tokens with values of one feature: ∂y/∂A is the outer product of the context's gradient and v.
TEST(GradientAttention, KeepsPositiveProductsOfTheMeanOverHeads) {
  const DifferentiatedAttention block{.weights = Tensor::from<float>({2, 2, 2}, {.5, .5, .25, .75, 1, 0, .5, .5}),
                                      .values = Tensor::from<float>({2, 2, 1}, {1, -2, 3, 1}),
                                      .context_gradient = Tensor::from<float>({2, 2, 1}, {2, -1, 1, 4})};
  EXPECT_TRUE(testing::close(weight_gradients(block), Tensor::from<float>({2, 2, 2}, {2, -4, -1, 2, 3, 1, 12, 4}), 0));
  const Tensor relevance = Tensor::from<float>({2, 2}, {2, 0, 3, 1.75});
  EXPECT_TRUE(testing::close(positive_relevance(block), relevance, 1e-6));
  EXPECT_TRUE(testing::close(gradient_attention({block}), Tensor::from<float>({2, 2}, {3, 0, 3, 2.75}), 1e-6));
  DifferentiatedAttention last = block;  // 0.75 for the second token by itself
  last.context_gradient = Tensor::from<float>({2, 2, 1}, {0, -1, 0, 0});
  const Tensor after_last = Tensor::from<float>({2, 2}, {3, 0, 5.25, 4.8125});
  EXPECT_TRUE(testing::close(gradient_attention({block, last}), after_last, 1e-6)) << "blocks do not commute";
  EXPECT_ERROR(testing::error_of([] { gradient_attention({}); }), "gradient attention", "none");
}

}  // namespace
}  // namespace vitrail::analysis
