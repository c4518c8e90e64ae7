// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/mask_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/parallel.h"

namespace vitrail::ops {
namespace {

using testing::error_of;

class MaskLosses : public ::testing::Test {
 protected:
  Tensor loss(const nlohmann::json& config, const Tensor& logits) const {
    const Tensor targets = golden_[config.value("targets", "targets")];
    if (config.at("loss") == "dice") return dice_loss(logits, targets);
    return focal_loss(logits, targets, {.alpha = config.at("alpha"), .gamma = config.at("gamma")});
  }

  const testing::Golden golden_ = testing::read_golden(testing::fixture("ops/mask_losses.safetensors"));
  const nlohmann::json cases_ = nlohmann::json::parse(golden_.config);
};

// The gradient of Σ weights · loss, with the fixture's weights of the masks.
TEST_F(MaskLosses, AndGradientsEqualPyTorchs) {
  for (const auto& [name, config] : cases_.items()) {
    Tensor logits = golden_["logits"].clone();
    autograd::set_requires_grad(logits, true);
    const Tensor result = loss(config, logits);
    EXPECT_TRUE(testing::close(result, golden_[name + ".loss"], 1e-13)) << name;
    autograd::backward(result, golden_["weights"]);
    EXPECT_TRUE(testing::close(autograd::grad_of(logits), golden_[name + ".grad"], 1e-14)) << name;
  }
}

// Each term has some roundings of 2^-24 of values below 10; the mean over pixels adds none in double.
TEST_F(MaskLosses, InSinglePrecisionStayWithinRounding) {
  for (const auto& [name, config] : cases_.items()) {
    const Tensor result = loss(config, golden_["logits"].to(DType::f32));
    EXPECT_EQ(result.dtype(), DType::f32);
    EXPECT_TRUE(testing::close(result, golden_[name + ".loss"], 16 * 0x1p-23 * 10)) << name;
  }
}

// tests/autograd/gradients_test.cpp derives the tolerance.
TEST_F(MaskLosses, GradientsEqualCentralDifferences) {
  for (const auto& [name, config] : cases_.items()) {
    const auto check = autograd::check_gradients(
        [&, &c = config](const std::vector<Tensor>& inputs) { return loss(c, inputs[0]); }, {golden_["logits"]});
    EXPECT_LT(check.worst, 1e-8) << name << ": element " << check.element << ", numerical " << check.numerical
                                 << ", analytic " << check.analytic;
  }
}

TEST_F(MaskLosses, DoNotDependOnThreads) {
  for (const auto& [name, config] : cases_.items()) {
    const Tensor before = loss(config, golden_["logits"]);
    const ThreadCount threads(3);
    EXPECT_TRUE(testing::close(loss(config, golden_["logits"]), before, 0)) << name;
  }
}

TEST(MaskLoss, RefusesShapesAndOptionsThatDoNotFit) {
  const Tensor logits = Tensor::zeros({2, 3, 5}), targets = Tensor::zeros({2, 5});
  const auto message = [&](const Tensor& x, const Tensor& t) { return testing::error_of([&] { dice_loss(x, t); }); };
  EXPECT_TRUE(testing::contains(message(logits, Tensor::zeros({3, 5})), "targets [B, P]"));
  EXPECT_TRUE(testing::contains(message(logits, Tensor::zeros({2, 4})), "targets [B, P]"));
  EXPECT_TRUE(testing::contains(message(targets, targets), "logits [B, M, P]"));
  EXPECT_TRUE(testing::contains(testing::error_of([&] { focal_loss(logits, targets, {.gamma = 0.5}); }), "0.5"));
  EXPECT_TRUE(testing::contains(testing::error_of([&] { focal_loss(logits, targets, {.alpha = 2}); }), "alpha"));
}

TEST(MaskLossOptions, TakeTheLimitsOfTheirOptions) {
  const Tensor logits = Tensor::from<double>({1, 1, 2}, {0, 1}), targets = Tensor::from<double>({1, 2}, {1, 0});
  const auto loss = [&](double alpha, double gamma) {
    return focal_loss(logits, targets, {.alpha = alpha, .gamma = gamma}).item<double>();
  };
  const double p0 = 0.5, p1 = 1 / (1 + std::exp(-1.0)), first = -std::log(p0), second = -std::log(1 - p1);
  EXPECT_NEAR(loss(1, 0), first / 2, 1e-15);
  EXPECT_NEAR(loss(0, 0), second / 2, 1e-15);
  EXPECT_NEAR(loss(1, 1), (1 - p0) * first / 2, 1e-15);
  EXPECT_NEAR(loss(0, 1), p1 * second / 2, 1e-15);
  EXPECT_NEAR(loss(0.25, 2), (0.25 * 0.25 * first + 0.75 * p1 * p1 * second) / 2, 1e-15);
  EXPECT_NEAR(loss(0.25, 3), (0.25 * 0.125 * first + 0.75 * p1 * p1 * p1 * second) / 2, 1e-15);
  EXPECT_NEAR(dice_loss(logits, targets).item<double>(), 1 - (2 * p0 + 1) / (p0 + p1 + 1 + 1), 1e-15);
  EXPECT_ERROR(error_of([&] { loss(1.5, 0.5); }), "focal_loss", "1.5, 0.5");
  EXPECT_ERROR(error_of([&] { dice_loss(logits, Tensor::zeros({2, 2})); }), "dice_loss", "[1, 1, 2] and [2, 2]");
  EXPECT_ERROR(error_of([&] { focal_loss(logits, Tensor::zeros({1, 3})); }), "focal_loss", "[1, 1, 2] and [1, 3]");
}

}  // namespace
}  // namespace vitrail::ops
