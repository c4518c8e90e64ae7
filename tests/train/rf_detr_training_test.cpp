// SPDX-License-Identifier: Apache-2.0
// Training of RF-DETR beside transformers: tests/fixtures/rf_detr/training.safetensors.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/models/rf_detr/box_operations.h"
#include "vitrail/models/rf_detr/rf_detr.h"
#include "vitrail/train/objectives/detection/detection_loss_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kGroups = 3;
constexpr double kRate = 1e-3;

// One step of gradient descent of all parameters.
void descend(const models::RfDetr& model) {
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    const Tensor grad = autograd::grad_of(parameter.tensor);
    if (!grad.defined()) continue;
    const Tensor values = grad.contiguous();
    float* const to = parameter.tensor.data<float>();
    for (int64_t i = 0; i < values.numel(); ++i) to[i] -= static_cast<float>(kRate) * values.data<float>()[i];
    autograd::clear_grad(parameter.tensor);
  }
}

// f32 differs from the reference's f64 by some roundings of each step.
TEST(RfDetrTraining, HasTheLossesOfTransformersInTenSteps) {
  const testing::Golden golden = testing::read_golden(testing::fixture("rf_detr/training.safetensors"));
  const models::RfDetrFiles files =
      models::with_groups(models::open_rf_detr(models::ModelFiles(testing::fixture("rf_detr/windows"))), kGroups);
  models::RfDetr model = models::load_rf_detr(files);
  model.requires_grad(true);
  std::vector<DetectionTargets> targets;
  for (const char* image : {"0", "1"}) {
    const Tensor classes = golden[std::string("classes_") + image], boxes = golden[std::string("boxes_") + image];
    targets.push_back({{classes.data<int64_t>(), classes.data<int64_t>() + classes.numel()},
                       {boxes.data<float>(), boxes.data<float>() + boxes.numel()}});
  }
  const Tensor images = golden["images"].to(DType::f32).contiguous(), losses = golden["losses"];
  for (int64_t step = 0; step < losses.numel(); ++step) {
    std::vector<DetectorOutput> outputs;
    for (const models::RfDetrOutput& output : model.outputs(images, kGroups))
      outputs.push_back({output.logits, output.boxes});
    const Tensor loss =
        detection_loss(outputs, targets, {.classes = ClassLoss::iou_aware, .class_cost = 2, .groups = kGroups});
    const double wanted = losses.data<double>()[step];
    EXPECT_NEAR(loss.item<double>(), wanted, 1e-4 * wanted) << "step " << step;
    autograd::backward(loss);
    descend(model);
  }
}

// tests/autograd/gradients_test.cpp derives the tolerance.
TEST(RfDetrTraining, GradientsOfBoxOperationsEqualCentralDifferences) {
  const Tensor boxes =
      Tensor::from<double>({1, 3, 4}, std::vector<double>{0.2, 0.3, 0.1, 0.2, 0.5, 0.6, 0.3, 0.1, 0.8, 0.4, 0.2, 0.25});
  Tensor deltas = Tensor::empty({2, 3, 4}, DType::f64);
  for (int64_t i = 0; i < deltas.numel(); ++i) deltas.data<double>()[i] = std::sin(static_cast<double>(i));
  const auto refined = autograd::check_gradients(
      [](const std::vector<Tensor>& in) { return models::refined_boxes(in[0], in[1]); }, {boxes, deltas});
  EXPECT_LT(refined.worst, 1e-8) << refined.input << " " << refined.element;
  const auto code =
      autograd::check_gradients([](const std::vector<Tensor>& in) { return models::sine_code(in[0], 6); }, {boxes});
  EXPECT_LT(code.worst, 1e-7) << code.element << ": " << code.numerical << " " << code.analytic;
}

}  // namespace
}  // namespace vitrail::train
