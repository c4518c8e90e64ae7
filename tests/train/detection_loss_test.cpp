// SPDX-License-Identifier: Apache-2.0
// The losses of detectors beside those of transformers: tests/fixtures/train/detection_losses.safetensors.
#include "vitrail/train/objectives/detection/detection_loss_internal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"

namespace vitrail::train {
namespace {

class DetectionLosses : public ::testing::Test {
 protected:
  std::vector<DetectionTargets> targets() const {
    std::vector<DetectionTargets> result;
    for (int i = 0; i < 3; ++i) {
      const Tensor classes = golden_["classes." + std::to_string(i)];
      const Tensor boxes = golden_["objects." + std::to_string(i)].to(DType::f32).contiguous();
      result.push_back({{classes.data<int64_t>(), classes.data<int64_t>() + classes.numel()},
                        {boxes.data<float>(), boxes.data<float>() + boxes.numel()}});
    }
    return result;
  }

  // The loss and the gradients of the outputs of a case; qualities are computed from f32.
  void expect_equal(const std::string& name, int count, const DetectionLossOptions& options) const {
    std::vector<DetectorOutput> outputs;
    for (int i = 0; i < count; ++i) {
      const std::string at = std::to_string(i);
      outputs.push_back({golden_[name + ".logits." + at].clone(), golden_[name + ".boxes." + at].clone()});
      autograd::set_requires_grad(outputs.back().logits, true);
      autograd::set_requires_grad(outputs.back().boxes, true);
    }
    const Tensor loss = detection_loss(outputs, targets(), options);
    EXPECT_TRUE(testing::close(loss, golden_[name + ".loss"], 1e-6)) << name;
    autograd::backward(loss);
    for (int i = 0; i < count; ++i) {
      const std::string at = std::to_string(i) + ".grad";
      const auto& [logits, boxes] = outputs[static_cast<size_t>(i)];
      EXPECT_TRUE(testing::close(autograd::grad_of(logits), golden_[name + ".logits." + at], 1e-7)) << name << i;
      EXPECT_TRUE(testing::close(autograd::grad_of(boxes), golden_[name + ".boxes." + at], 1e-7)) << name << i;
    }
  }

  const testing::Golden golden_ = testing::read_golden(testing::fixture("train/detection_losses.safetensors"));
};

TEST_F(DetectionLosses, OfSoftmaxEqualsYolos) { expect_equal("softmax", 1, {}); }

TEST_F(DetectionLosses, OfQualitiesEqualsRfDetrs) {
  expect_equal("iou_aware", 3,
               {.classes = ClassLoss::iou_aware,
                .class_cost = 2,
                .groups = nlohmann::json::parse(golden_.config).at("groups").get<int64_t>()});
}

TEST_F(DetectionLosses, WithoutObjectsAreOfTheClassesAlone) {
  const DetectorOutput output{Tensor::zeros({1, 2, 3}), Tensor::full({1, 2, 4}, 0.5)};
  const double softmax = detection_loss({output}, {{}}, {}).item<double>();
  EXPECT_NEAR(softmax, std::log(3), 1e-6);
  const double aware = detection_loss({output}, {{}}, {.classes = ClassLoss::iou_aware}).item<double>();
  EXPECT_NEAR(aware, 6 * 0.25 * std::log(2), 1e-6);
}

}  // namespace
}  // namespace vitrail::train
