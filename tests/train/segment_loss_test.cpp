// SPDX-License-Identifier: Apache-2.0
// The loss of segmentation training beside PyTorch's: tests/fixtures/ops/mask_losses.safetensors.
#include <array>
#include <map>

#include "tests/support/golden.h"
#include "tests/train/segment_fixture.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/train/segment_loss_internal.h"
#include "vitrail/train/simulated_prompts_internal.h"

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

}  // namespace
}  // namespace vitrail::train
