// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/ops/inputs.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/ops/mask_loss.h"

namespace vitrail::ops {
namespace {

using autograd::grad_of;
using testing::error_of;

// The loss with a case's options.
Tensor loss_of_case(const nlohmann::json& config, const testing::Golden& golden, const Tensor& logits) {
  if (config.at("loss") == "distillation") {
    return distillation(logits, golden["teacher"],
                        {.hard = config.value("hard", false),
                         .temperature = config.value("temperature", 1.0),
                         .per_element = config.value("per_element", false)});
  }
  const Tensor targets = golden[config.value("targets", "labels")];
  const double smoothing = config.value("smoothing", 0.0);
  std::optional<int64_t> ignored;
  if (config.contains("ignored")) ignored = config.at("ignored").get<int64_t>();
  if (config.at("loss") == "ce")
    return cross_entropy(logits, targets, smoothing,
                         config.contains("class_weights") ? golden["class_weights"] : Tensor(), ignored);
  BceOptions options{.label_smoothing = smoothing, .sum_classes = config.value("sum_classes", false)};
  if (config.contains("threshold")) options.threshold = config.at("threshold").get<double>();
  return bce_with_logits(logits, targets, options);
}

class Losses : public ::testing::Test {
 protected:
  const testing::Golden golden_ = testing::read_golden(testing::fixture("ops/losses.safetensors"));
  const nlohmann::json cases_ = nlohmann::json::parse(golden_.config);
};

TEST_F(Losses, AndGradientsEqualPyTorchs) {
  for (const auto& [name, config] : cases_.items()) {
    const Tensor logits = leaf_of(golden_["logits"]);
    const Tensor loss = loss_of_case(config, golden_, logits);
    EXPECT_EQ(loss.rank(), 0);
    EXPECT_TRUE(testing::close(loss, golden_[name + ".loss"], 1e-13)) << name;
    autograd::backward(loss);
    EXPECT_TRUE(testing::close(grad_of(logits), golden_[name + ".grad"], 1e-14)) << name;
  }
}

// Single precision: x − max has an error of 2^-21 for logits below 16, exponentials of 2 ulp, sums of 11 terms of 4
// ulp. Together, softmax has a relative error below 16 ulp, and so have losses, which are below 8.
TEST_F(Losses, InSinglePrecisionStayWithinRounding) {
  for (const auto& [name, config] : cases_.items()) {
    const Tensor logits = leaf_of(golden_["logits"].to(DType::f32));
    const Tensor loss = loss_of_case(config, golden_, logits);
    EXPECT_EQ(loss.dtype(), DType::f32);
    EXPECT_TRUE(testing::close(loss, golden_[name + ".loss"], 16 * 0x1p-23 * 8)) << name;
    autograd::backward(loss);
    EXPECT_TRUE(testing::close(grad_of(logits), golden_[name + ".grad"], 16 * 0x1p-23)) << name;
  }
}

// tests/autograd/gradients_test.cpp derives the tolerance.
TEST_F(Losses, GradientsEqualCentralDifferences) {
  for (const auto& item : cases_.items()) {
    const auto check = autograd::check_gradients(
        [&](const std::vector<Tensor>& in) { return loss_of_case(item.value(), golden_, in[0]); }, {golden_["logits"]});
    EXPECT_LT(check.worst, 1e-8) << item.key() << " element " << check.element;
  }
}

// 255 is no class.  Maps may have no other label.
TEST(CrossEntropy, LeavesOutIgnoredLabelsThatAreNoClasses) {
  for (const Tensor& weights : {Tensor(), Tensor::from<double>({2}, {1, 3})}) {
    const Tensor logits = leaf_of(Tensor::randn({3, 2}, 1, DType::f64));
    const Tensor loss = cross_entropy(logits, Tensor::from<int64_t>({3}, {255, 1, 255}), 0, weights, 255);
    const Tensor alone = cross_entropy(logits.narrow(0, 1, 1), Tensor::from<int64_t>({1}, {1}));
    EXPECT_NEAR(loss.item<double>(), alone.item<double>(), 1e-15);
    const Tensor nothing = cross_entropy(logits, Tensor::full({3}, 255, DType::i64), 0, weights, 255);
    EXPECT_EQ(nothing.item<double>(), 0);
    autograd::backward(nothing);
    EXPECT_TRUE(testing::close(grad_of(logits), Tensor::zeros({3, 2}, DType::f64), 0));
  }
}

// timm's target.gt(threshold): a target at the threshold is 0.
TEST(BinaryCrossEntropy, OnlyATargetAboveTheThresholdIsOne) {
  const Tensor logits = Tensor::randn({1, 3}, 1, DType::f64);
  const auto loss = [&](std::vector<double> targets, std::optional<double> threshold) {
    return bce_with_logits(logits, Tensor::from<double>({1, 3}, targets), {.threshold = threshold});
  };
  EXPECT_TRUE(testing::close(loss({0.25, 0.5, 0.75}, 0.5), loss({0, 0, 1}, std::nullopt), 1e-15));
}

// A teacher that rules a class out, as a masked one does: the term of that class is the limit of p log p.
TEST(Distillation, AClassOfProbabilityZeroAddsNothing) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Tensor student = leaf_of(Tensor::from<double>({1, 3}, {0.5, -1, 2}).to(dtype));
    const Tensor teacher = Tensor::from<double>({1, 3}, {1, -inf, 0}).to(dtype);
    const Tensor loss = distillation(student, teacher);
    const double sum = std::exp(0.5) + std::exp(-1.0) + std::exp(2.0), p = std::exp(1.0) / (std::exp(1.0) + 1);
    const double q0 = std::exp(0.5) / sum, q1 = std::exp(-1.0) / sum, q2 = std::exp(2.0) / sum;
    EXPECT_NEAR(loss.item<double>(), p * std::log(p / q0) + (1 - p) * std::log((1 - p) / q2), 2e-6);
    autograd::backward(loss);
    EXPECT_TRUE(testing::close(grad_of(student), Tensor::from<double>({1, 3}, {q0 - p, q1, q2 - (1 - p)}), 1e-6));
  }
}

TEST(Distillation, OfEqualLogitsIsZeroAndTheHardTargetIsTheFirstOfEqualOnes) {
  const Tensor logits = Tensor::randn({4, 7}, 1, DType::f64);
  EXPECT_NEAR(distillation(logits, logits, {.temperature = 3}).item<double>(), 0, 1e-14);
  const Tensor teacher = Tensor::from<double>({2, 3}, {1, 5, 5, 7, 7, 0}),
               student = Tensor::randn({2, 3}, 2, DType::f64);
  EXPECT_EQ(distillation(student, teacher, {.hard = true}).item<double>(),
            cross_entropy(student, Tensor::from<int64_t>({2}, {1, 0})).item<double>());
}

TEST(WeightedSum, RefusesOtherDtypesAndCounts) {
  const Tensor single = Tensor::full({}, 1), wide = Tensor::full({}, 1, DType::f64);
  EXPECT_THROW(weighted_sum({single, wide}, {1, 1}), Error);
  EXPECT_THROW(weighted_sum({single}, {1, 1}), Error);
  EXPECT_EQ(weighted_sum({single, Tensor::full({1}, 3)}, {2, -1}).item<float>(), -1);
  EXPECT_EQ(weighted_sum({wide}, {1}).dtype(), DType::f64);
}

TEST(BinaryCrossEntropy, SmoothsLabelsAndNoDistributions) {
  const Tensor logits = Tensor::randn({2, 4}, 1, DType::f64), labels = Tensor::from<int64_t>({2}, {3, 0});
  const double off = 0.1 / 4, on = 0.9 + off;
  const Tensor smoothed = Tensor::from<double>({2, 4}, {off, off, off, on, on, off, off, off});
  EXPECT_TRUE(testing::close(bce_with_logits(logits, labels, {.label_smoothing = 0.1}),
                             bce_with_logits(logits, smoothed, {.label_smoothing = 0.1}), 1e-15));
}

TEST(CrossEntropy, IncomingGradientsScaleItsOwn) {
  const Tensor logits = leaf_of(Tensor::randn({3, 4}, 1, DType::f64));
  const Tensor labels = Tensor::from<int64_t>({3}, {0, 3, 1});
  const Tensor loss = weighted_sum({cross_entropy(logits, labels), cross_entropy(logits, labels)}, {0.25, 0.5});
  autograd::backward(loss, Tensor::full({}, 4, DType::f64));
  const Tensor sum_grad = grad_of(logits);
  const Tensor other = leaf_of(logits);
  const Tensor plain = cross_entropy(other, labels);
  EXPECT_NEAR(loss.item<double>(), 0.75 * plain.item<double>(), 1e-14);
  autograd::backward(plain, Tensor::full({}, 3, DType::f64));
  EXPECT_TRUE(testing::close(sum_grad, grad_of(other), 1e-14));
}

TEST(CrossEntropy, IsExactForHugeLogits) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor logits = leaf_of(Tensor::from<float>({2, 3}, {1e30f, 0, -1e30f, 100, 100, -1e4f}).to(dtype));
    const Tensor loss = cross_entropy(logits, Tensor::from<int64_t>({2}, {0, 1}));
    EXPECT_NEAR(loss.item<double>(), std::log(2.0) / 2, 1e-7);
    autograd::backward(loss);
    EXPECT_TRUE(testing::close(grad_of(logits), Tensor::from<double>({2, 3}, {0, 0, 0, 0.25, -0.25, 0}), 1e-7));
  }
}

TEST(CrossEntropy, ANaNLogitGivesANaNLoss) {
  const Tensor logits = Tensor::from<float>({1, 3}, {0, std::numeric_limits<float>::quiet_NaN(), 0});
  EXPECT_TRUE(std::isnan(cross_entropy(logits, Tensor::from<int64_t>({1}, {0})).item<double>()));
}

TEST(CrossEntropy, ComputesSixteenBitLogitsInFloat) {
  const Tensor logits = Tensor::randn({4, 5}, 1, DType::bf16);
  const Tensor labels = Tensor::from<int64_t>({4}, {0, 1, 2, 3}), loss = cross_entropy(logits, labels);
  EXPECT_EQ(loss.dtype(), DType::f32);
  EXPECT_EQ(loss.item<float>(), cross_entropy(logits.to(DType::f32), labels).item<float>());
}

TEST(CrossEntropy, DoesNotDependOnThreads) {
  const Tensor logits = Tensor::randn({64, 1000}, 1);
  const Tensor labels = Tensor::zeros({64}, DType::i64);
  std::vector<Tensor> losses, grads;
  for (const int count : {1, 3}) {
    const ThreadCount threads(count);
    const Tensor leaf = leaf_of(logits), loss = cross_entropy(leaf, labels, 0.1);
    autograd::backward(loss);
    losses.push_back(loss);
    grads.push_back(grad_of(leaf));
  }
  EXPECT_EQ(losses[0].item<float>(), losses[1].item<float>());
  EXPECT_TRUE(testing::close(grads[0], grads[1], 0));
}

TEST(CrossEntropy, RecordsNothingWithoutGradients) {
  EXPECT_FALSE(autograd::requires_grad(cross_entropy(Tensor::zeros({1, 2}), Tensor::zeros({1}, DType::i64))));
}

TEST(Loss, ErrorsNameTheWrongTarget) {
  const Tensor logits = Tensor::zeros({2, 3});
  auto message = [](const std::function<void()>& action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_ERROR(message([&] {
                 cross_entropy(logits, Tensor::from<int64_t>({2}, {0, 3}));
               }),
               "cross_entropy", "3 for sample 1");
  EXPECT_ERROR(message([&] { cross_entropy(logits, Tensor::zeros({3}, DType::i64)); }), "cross_entropy", "i64 [3]");
  EXPECT_ERROR(message([&] { cross_entropy(logits, Tensor::zeros({2, 4})); }), "cross_entropy", "[2, 4]");
  EXPECT_ERROR(message([&] {
                 cross_entropy(Tensor::zeros({0, 3}), Tensor::zeros({0}, DType::i64));
               }),
               "cross_entropy", "[0, 3]");
  EXPECT_ERROR(message([&] { cross_entropy(logits, Tensor::zeros({2}, DType::i64), 1); }), "cross_entropy", "1");
  EXPECT_ERROR(message([&] { cross_entropy(logits, Tensor::zeros({2}, DType::i64), 0, Tensor::zeros({2})); }),
               "cross_entropy", "[2]");
  EXPECT_ERROR(message([&] { distillation(logits, Tensor::zeros({2, 4})); }), "distillation", "[2, 4]");
  EXPECT_ERROR(message([&] { distillation(logits, logits, {.temperature = 0}); }), "distillation", "0");
  EXPECT_ERROR(message([&] { weighted_sum({}, {}); }), "weighted_sum", "0 terms and 0 weights");
}

TEST(LossOptions, HaveTheDefaultsOfTheirPapers) {
  EXPECT_EQ(FocalOptions().alpha, 0.25);
  EXPECT_EQ(FocalOptions().gamma, 2);
  EXPECT_EQ(DistillationOptions().temperature, 1);
  EXPECT_FALSE(DistillationOptions().hard);
  EXPECT_FALSE(DistillationOptions().per_element);
  EXPECT_EQ(BceOptions().label_smoothing, 0);
  EXPECT_FALSE(BceOptions().threshold);
  EXPECT_FALSE(BceOptions().sum_classes);
}

TEST(LossOptions, ErrorsNameTheLoss) {
  const Tensor logits = Tensor::zeros({2, 3}), labels = Tensor::zeros({2}, DType::i64);
  EXPECT_ERROR(error_of([&] { bce_with_logits(logits, labels, {.label_smoothing = 1}); }), "bce_with_logits", "1");
  EXPECT_ERROR(error_of([&] { cross_entropy(logits, labels, -0.5); }), "cross_entropy", "-0.5");
  EXPECT_ERROR(error_of([&] { bce_with_logits(logits, Tensor::zeros({3}, DType::i64)); }), "bce_with_logits",
               "i64 [3]");
  EXPECT_ERROR(error_of([&] { bce_with_logits(logits, Tensor::zeros({2}, DType::i32)); }), "bce_with_logits",
               "i32 [2]");
  EXPECT_ERROR(error_of([&] {
                 bce_with_logits(logits, Tensor::from<int64_t>({2}, {-1, 7}));
               }),
               "bce_with_logits", "-1 for sample 0");
  EXPECT_ERROR(error_of([&] { distillation(Tensor::zeros({3}), logits); }), "distillation", "[3]");
  for (const double temperature : {0.0, -2.0}) {
    EXPECT_EQ(error_of([&] { distillation(logits, logits, {.temperature = temperature}); }),
              str("distillation: expected a temperature above 0, got ", temperature));
  }
  EXPECT_NO_THROW(distillation(logits, logits, {.hard = true, .temperature = 0}));
  EXPECT_ERROR(error_of([&] {
                 weighted_sum({Tensor::zeros({}), Tensor::zeros({}, DType::f64)}, {1, 2});
               }),
               "weighted_sum", "f64");
  EXPECT_ERROR(error_of([&] { weighted_sum({Tensor::zeros({})}, {1, 2}); }), "weighted_sum", "1 terms and 2 weights");
}

TEST(WeightedSum, GivesEachTermItsWeightTimesTheGradient) {
  const Tensor a = leaf_of(Tensor::full({}, 3, DType::f64)), b = leaf_of(Tensor::full({1}, 5, DType::f64));
  const Tensor sum = weighted_sum({a, b}, {0.5, -2});
  EXPECT_EQ(sum.item<double>(), -8.5);
  autograd::backward(sum, Tensor::full({}, 10, DType::f64));
  EXPECT_EQ(autograd::grad_of(a).item<double>(), 5);
  EXPECT_EQ(autograd::grad_of(b).item<double>(), -20);
  EXPECT_EQ(autograd::grad_of(b).shape(), (Shape{1}));
}

TEST(CrossEntropy, WeighsClassesAndDividesByTheWeightsOfTheLabels) {
  const Tensor logits = draw({3, 4}, 1), weights = Tensor::from<double>({4}, {0.5, 2, 1, 3});
  const Tensor labels = Tensor::from<int64_t>({3}, {1, 3, 1});
  const auto log_softmax = [&](int64_t r, int64_t c) {
    const double* const row = logits.data<double>() + r * 4;
    double sum = 0;
    for (int64_t i = 0; i < 4; ++i) sum += std::exp(row[i]);
    return row[c] - std::log(sum);
  };
  for (const double smoothing : {0.0, 0.2}) {
    double sum = 0, plain = 0, soft = 0;
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t c = 0; c < 4; ++c) {
        const double t = (1 - smoothing) * (labels.data<int64_t>()[r] == c ? 1 : 0) + smoothing / 4;
        sum -= weights.data<double>()[c] * t * log_softmax(r, c);
        plain -= t * log_softmax(r, c);
      }
    }
    EXPECT_NEAR(cross_entropy(logits, labels, smoothing).item<double>(), plain / 3, 1e-14);
    EXPECT_NEAR(cross_entropy(logits, labels, smoothing, weights).item<double>(), sum / (2 + 3 + 2), 1e-14);
    const Tensor targets = Tensor::from<double>({3, 4}, {0.1, 0.2, 0.3, 0.4, 1, 0, 0, 0, 0.25, 0.25, 0.25, 0.25});
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t c = 0; c < 4; ++c) {
        const double t = (1 - smoothing) * targets.data<double>()[r * 4 + c] + smoothing / 4;
        soft -= weights.data<double>()[c] * t * log_softmax(r, c);
      }
    }
    EXPECT_NEAR(cross_entropy(logits, targets, smoothing, weights).item<double>(), soft / 3, 1e-14);
  }
}

}  // namespace
}  // namespace vitrail::ops
