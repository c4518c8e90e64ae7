// SPDX-License-Identifier: Apache-2.0
// The loss of segmentation training beside PyTorch's: tests/fixtures/ops/mask_losses.safetensors.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "tests/support/golden.h"
#include "tests/train/segment_fixture.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/train/objectives/segmentation/segment_loss_internal.h"
#include "vitrail/train/objectives/segmentation/simulated_prompts_internal.h"

namespace vitrail::train {
namespace {

TEST(SegmentLoss, AndGradientsEqualPyTorchs) {
  const testing::Golden golden = testing::read_golden(testing::fixture("ops/mask_losses.safetensors"));
  Tensor logits = golden["logits"].contiguous().view({4, 4, 3, 3}).clone(), iou = golden["iou"].clone();
  autograd::set_requires_grad(logits, true);
  autograd::set_requires_grad(iou, true);
  const SegmentLoss loss = segment_loss({logits, iou}, golden["targets"].contiguous().view({4, 3, 3}), {});
  EXPECT_TRUE(testing::close(loss.loss, golden["segment.loss"], 1e-12));
  autograd::backward(loss.loss);
  EXPECT_TRUE(testing::close(autograd::grad_of(logits).contiguous().view({4, 4, 9}), golden["segment.grad"], 1e-13));
  EXPECT_TRUE(testing::close(autograd::grad_of(iou), golden["segment.iou_grad"], 1e-13));
}

TEST(SegmentLoss, IouIsOfThePixelsAboveZero) {
  // Four masks of four pixels for one target of two: none, the target, one of it and one other, all; and no target.
  const std::vector<float> masks{-1, -1, -1, -1, 1, 1, -1, -1, -1, 1, 1, -1, 1, 1, 1, 1};
  const Tensor logits = Tensor::from<float>({1, 4, 2, 2}, masks), iou = Tensor::zeros({1, 4});
  const auto measured = [&](const std::vector<float>& target) {
    const Tensor result = segment_loss({logits, iou}, Tensor::from<float>({1, 2, 2}, target), {}).iou;
    return std::vector<float>(result.data<float>(), result.data<float>() + 4);
  };
  EXPECT_EQ(measured({1, 1, 0, 0}), (std::vector<float>{0, 1, 1.0F / 3, 0.5}));
  EXPECT_EQ(measured({0, 0, 0, 0}), (std::vector<float>{1, 0, 0, 0}));
  const Tensor zeros = Tensor::zeros({1, 4, 2, 2}), full = Tensor::full({1, 2, 2}, 1);
  EXPECT_EQ(segment_loss({zeros, iou}, full, {}).iou.data<float>()[1], 0) << "a logit of 0 is outside of a mask";
}

sam::BinaryMask square() {
  sam::BinaryMask mask = sam::make_mask(64, 64);
  for (int64_t y = 20; y < 40; ++y) std::fill_n(mask.row(y) + 10, 20, uint8_t{1});
  return mask;
}

TEST(SimulatedPrompts, AreInTheMaskAndFollowTheSeed) {
  const sam::BinaryMask mask = square();
  RandomStream random(1), same(1);
  std::array<double, 4> sums{};
  for (int i = 0; i < 200; ++i) {
    const sam::Point click = click_in(mask, 1, random), again = click_in(mask, 1, same);
    EXPECT_EQ(mask.row(static_cast<int64_t>(click.y))[static_cast<int64_t>(click.x)], 1);
    EXPECT_TRUE(click.x == again.x && click.y == again.y);
    const sam::Box box = jittered_box(mask, random);
    jittered_box(mask, same);
    EXPECT_NEAR(box.x0, 10, 1.25);  // at most 20 of 1024 pixels
    EXPECT_NEAR(box.y0, 20, 1.25);
    EXPECT_NEAR(box.x1, 30, 1.25);
    EXPECT_NEAR(box.y1, 40, 1.25);
    for (size_t edge = 0; edge < 4; ++edge) sums[edge] += (std::array{box.x0, box.y0, box.x1, box.y1}).at(edge);
  }
  // Noise of at most 1.25 has a standard deviation of at most that: five standard errors of the mean.
  const std::array<double, 4> edges{10, 20, 30, 40};
  for (size_t edge = 0; edge < 4; ++edge) EXPECT_NEAR(sums[edge] / 200, edges[edge], 0.45);
}

TEST(SimulatedPrompts, CorrectMissingAndSurplusParts) {
  sam::BinaryMask target = square(), predicted = target;
  RandomStream random(2);
  EXPECT_FALSE(correction_click(predicted, target, 2, random));
  predicted.row(25)[15] = 0;
  const auto missing = correction_click(predicted, target, 2, random);
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->label, 1);
  EXPECT_TRUE(missing->x == 30 || missing->x == 31) << missing->x;
  EXPECT_TRUE(missing->y == 50 || missing->y == 51) << missing->y;
  predicted = target;
  predicted.row(3)[5] = 1;
  EXPECT_EQ(correction_click(predicted, target, 2, random)->label, 0);
}

TEST(SimulatedPrompts, ReachEveryPixelOfTheMaskAndNoOther) {
  sam::BinaryMask mask = sam::make_mask(4, 3);
  mask.row(0)[0] = mask.row(1)[2] = mask.row(2)[3] = 1;
  RandomStream random(3);
  std::map<std::pair<double, double>, int> clicks;
  for (int i = 0; i < 600; ++i) {
    const sam::Point click = click_in(mask, 0, random);
    EXPECT_EQ(click.label, 0);
    ++clicks[{click.x, click.y}];
  }
  ASSERT_EQ(clicks.size(), 3u);
  for (const auto& at : {std::pair{0.0, 0.0}, {2.0, 1.0}, {3.0, 2.0}}) EXPECT_NEAR(clicks[at], 200, 60);
}

TEST(SimulatedPrompts, ABoxStaysInTheFrameAndHasAnArea) {
  RandomStream random(4);
  for (int i = 0; i < 300; ++i) {
    sam::BinaryMask mask = sam::make_mask(200, 100);
    const int64_t x = i % 200, y = i % 100;
    mask.row(y)[x] = 1;
    if (i % 2 != 0) mask.row(0)[0] = mask.row(99)[199] = 1;  // the whole frame, else one pixel
    const sam::Box box = jittered_box(mask, random);
    EXPECT_LT(box.x0, box.x1);
    EXPECT_LT(box.y0, box.y1);
    EXPECT_GE(std::min(box.x0, box.y0), 0);
    EXPECT_LE(box.x1, 200);
    EXPECT_LE(box.y1, 100);
    if (i % 2 == 0) {
      EXPECT_NEAR(box.x0, static_cast<double>(x), 0.5);
      EXPECT_NEAR(box.y1, static_cast<double>(y + 1), 0.5);
    }
  }
}

// With two masks the second is always the best of the others, so the loss is linear in the weights of its parts.
TEST(SegmentLoss, IsTheWeightedSumOfItsParts) {
  const Tensor logits = Tensor::randn({3, 2, 2, 5}, 1, DType::f64), iou = Tensor::randn({3, 2}, 2, DType::f64);
  Tensor targets = Tensor::zeros({3, 2, 5}, DType::f64);
  for (int64_t i = 0; i < 30; i += 3) targets.data<double>()[i] = 1;
  const auto loss = [&](double focal, double dice, double iou_weight, double alpha = 0.25, double gamma = 2) {
    SegmentRecipe recipe;
    recipe.focal_weight = focal;
    recipe.dice_weight = dice;
    recipe.iou_weight = iou_weight;
    recipe.focal_alpha = alpha;
    recipe.focal_gamma = gamma;
    return segment_loss({logits, iou}, targets, recipe).loss.item<double>();
  };
  EXPECT_NEAR(loss(3, 5, 7), 3 * loss(1, 0, 0) + 5 * loss(0, 1, 0) + 7 * loss(0, 0, 1), 1e-12);
  EXPECT_GT(loss(0, 1, 0), loss(0, 0.5, 0));
  // Without focus, and with both classes weighted by a half, the focal loss is half of the binary cross-entropy.
  double entropy = 0;
  for (int64_t b = 0; b < 3; ++b) {
    for (int64_t m = 0; m < 2; ++m) {
      for (int64_t i = 0; i < 10; ++i) {
        const double x = logits.data<double>()[(b * 2 + m) * 10 + i];
        entropy += std::log1p(std::exp(targets.data<double>()[b * 10 + i] > 0 ? -x : x)) / 10 / 3;
      }
    }
  }
  EXPECT_NEAR(loss(1, 0, 0, 0.5, 0), entropy / 2, 1e-12);
  double squares = 0;
  for (int64_t b = 0; b < 3; ++b) {
    for (int64_t m = 0; m < 2; ++m) {
      int both = 0, either = 0;
      for (int64_t i = 0; i < 10; ++i) {
        const bool in_mask = logits.data<double>()[(b * 2 + m) * 10 + i] > 0,
                   target = targets.data<double>()[b * 10 + i] > 0;
        both += in_mask && target;
        either += in_mask || target;
      }
      squares += std::pow(iou.data<double>()[b * 2 + m] - static_cast<double>(both) / either, 2);
    }
  }
  EXPECT_NEAR(loss(0, 0, 1), squares / 6, 1e-12);
}

// The loss is of mask 0 and of the best one of the others.
TEST(SegmentLoss, TakesTheBestOfTheOtherMasks) {
  const Tensor target = Tensor::from<float>({1, 1, 2}, {1, 0}), iou = Tensor::zeros({1, 4});
  const auto best = [&](const std::vector<float>& logits) {
    return segment_loss({Tensor::from<float>({1, 4, 1, 2}, logits), iou}, target, {}).best;
  };
  EXPECT_EQ(best({9, -9, -3, 3, 4, -4, 0, 0}), (std::vector<int64_t>{2})) << "the first mask does not count";
  EXPECT_EQ(best({9, -9, -3, 3, 0, 0, 4, -4}), (std::vector<int64_t>{3}));
  EXPECT_EQ(best({9, -9, 2, -2, 2, -2, 2, -2}), (std::vector<int64_t>{1})) << "of equal ones the first";
}

// A tenth of the side, at most 20 of 1024 pixels of the longer side of the frame.
TEST(SimulatedPrompts, NoiseOfBoxesHasItsDeviationAndItsLimit) {
  sam::BinaryMask wide = sam::make_mask(1024, 512);
  for (int64_t y = 200; y < 230; ++y) std::fill_n(wide.row(y) + 100, 60, uint8_t{1});
  RandomStream random(5);
  double squares[2] = {}, sums[2] = {};
  constexpr int kDraws = 2000;
  for (int i = 0; i < kDraws; ++i) {
    const sam::Box box = jittered_box(wide, random);
    squares[0] += std::pow(box.x0 - 100, 2) + std::pow(box.x1 - 160, 2);
    squares[1] += std::pow(box.y0 - 200, 2) + std::pow(box.y1 - 230, 2);
    sums[0] += box.x1 - box.x0;
    sums[1] += box.y1 - box.y0;
  }
  EXPECT_NEAR(std::sqrt(squares[0] / (2 * kDraws)), 6, 0.4);
  EXPECT_NEAR(std::sqrt(squares[1] / (2 * kDraws)), 3, 0.2);
  EXPECT_NEAR(sums[0] / kDraws, 60, 1);
  EXPECT_NEAR(sums[1] / kDraws, 30, 0.5);
  sam::BinaryMask tall = sam::make_mask(64, 128);  // at most 2.5 pixels
  for (int64_t y = 20; y < 100; ++y) std::fill_n(tall.row(y) + 10, 40, uint8_t{1});
  double largest = 0;
  for (int i = 0; i < 100; ++i) {
    const sam::Box box = jittered_box(tall, random);
    for (const double distance : {box.x0 - 10, box.x1 - 50, box.y0 - 20, box.y1 - 100})
      largest = std::max(largest, std::abs(distance));
  }
  EXPECT_EQ(largest, 2.5);
}

TEST(SimulatedPrompts, ACorrectionIsAnyPixelOfTheWrongOnes) {
  sam::BinaryMask target = sam::make_mask(5, 3), predicted = target;
  target.row(1)[4] = 1;     // missing
  predicted.row(2)[0] = 1;  // too much
  RandomStream random(6);
  std::map<std::array<double, 3>, int> clicks;
  for (int i = 0; i < 400; ++i) {
    const auto click = correction_click(predicted, target, 1, random);
    ++clicks[{click->x, click->y, static_cast<double>(click->label)}];
  }
  ASSERT_EQ(clicks.size(), 2u);
  EXPECT_NEAR((clicks[{4, 1, 1}]), 200, 50);
  EXPECT_NEAR((clicks[{0, 2, 0}]), 200, 50);
}

}  // namespace
}  // namespace vitrail::train
