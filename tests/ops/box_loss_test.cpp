// SPDX-License-Identifier: Apache-2.0
// The losses of detectors beside PyTorch's: tests/fixtures/ops/box_losses.safetensors.
#include "vitrail/ops/box_loss.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/autograd/variable.h"

namespace vitrail::ops {
namespace {

using testing::error_of;

struct BoxLossCase {
  const char *values, *targets;
  std::function<Tensor(const Tensor&, const Tensor&)> loss;
};

const std::map<std::string, BoxLossCase> kBoxLosses{{"l1", {"predicted", "target", box_l1_loss}},
                                                    {"giou", {"predicted", "target", giou_loss}},
                                                    {"iou_aware", {"logits", "quality", iou_aware_loss}}};

class BoxLosses : public ::testing::Test {
 protected:
  const testing::Golden golden_ = testing::read_golden(testing::fixture("ops/box_losses.safetensors"));
};

TEST_F(BoxLosses, AndGradientsEqualPyTorchs) {
  for (const auto& [name, each] : kBoxLosses) {
    Tensor values = golden_[each.values].clone();
    autograd::set_requires_grad(values, true);
    const Tensor loss = each.loss(values, golden_[each.targets]);
    EXPECT_TRUE(testing::close(loss, golden_[name + ".loss"], 1e-12)) << name;
    autograd::backward(loss);
    EXPECT_TRUE(testing::close(autograd::grad_of(values), golden_[name + ".grad"], 1e-12)) << name;
  }
}

// tests/autograd/gradients_test.cpp derives the tolerance.
TEST_F(BoxLosses, GradientsEqualCentralDifferences) {
  for (const auto& [name, each] : kBoxLosses) {
    const auto check = autograd::check_gradients(
        [&, &each = each](const std::vector<Tensor>& in) { return each.loss(in[0], golden_[each.targets]); },
        {golden_[each.values]});
    EXPECT_LT(check.worst, 1e-7) << name << ": element " << check.element << ", numerical " << check.numerical
                                 << ", analytic " << check.analytic;
  }
}

// Some roundings of 2^-24 of each of the terms, which are below 16.
TEST_F(BoxLosses, InSinglePrecisionStayWithinRounding) {
  for (const auto& [name, each] : kBoxLosses) {
    const Tensor loss = each.loss(golden_[each.values].to(DType::f32), golden_[each.targets]);
    EXPECT_EQ(loss.dtype(), DType::f32);
    EXPECT_TRUE(testing::close(loss, golden_[name + ".loss"], 24 * 16 * 0x1p-22)) << name;
  }
}

// A unit square beside one of the same size at half a side's distance, and at two sides' distance.
TEST(BoxOverlap, IsThatOfTheAreas) {
  const float box[] = {0, 0, 1, 1}, near[] = {0.5, 0, 1, 1}, far[] = {3, 0, 1, 1};
  EXPECT_NEAR(box_overlap(box, box).giou, 1, 1e-7);
  EXPECT_NEAR(box_overlap(box, near).iou, 1.0 / 3, 1e-7);
  EXPECT_NEAR(box_overlap(box, near).giou, 1.0 / 3, 1e-7);
  EXPECT_NEAR(box_overlap(box, far).iou, 0, 1e-7);
  EXPECT_NEAR(box_overlap(box, far).giou, 2.0 / 4 - 1, 1e-7);
}

TEST(BoxLoss, RefusesOtherShapes) {
  const Tensor boxes = Tensor::full({2, 4}, 0.5);
  EXPECT_ERROR(error_of([&] { giou_loss(boxes, Tensor::zeros({3, 4})); }), "giou_loss", "[2, 4] and [3, 4]");
  EXPECT_ERROR(error_of([&] { box_l1_loss(Tensor::zeros({4}), Tensor::zeros({4})); }), "box_l1_loss", "[4] and [4]");
  EXPECT_ERROR(error_of([&] { iou_aware_loss(boxes, Tensor::zeros({2, 3})); }), "iou_aware_loss", "[2, 4] and [2, 3]");
}

}  // namespace
}  // namespace vitrail::ops
