// SPDX-License-Identifier: Apache-2.0
// What holds for every operation: its recording, its flops, its dtypes and its gradient.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/inputs.h"
#include "tests/support/golden.h"
#include "tests/support/operations.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/ops/recorder.h"

namespace vitrail::ops {
namespace {

class EveryOperation : public ::testing::TestWithParam<testing::OperationCase> {};

// The first input is on the meta device.
std::vector<Tensor> symbolic_inputs(const testing::OperationCase& each, DType dtype) {
  std::vector<Tensor> inputs = testing::inputs_of(each, dtype);
  inputs[0] = Tensor::empty(each.shapes[0], dtype, Device::meta);
  return inputs;
}

TEST_P(EveryOperation, IsRecordedWithTheShapeThatItComputes) {
  const auto& each = GetParam();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Recorder recorder;
    const Tensor result = each.run(symbolic_inputs(each, dtype));
    EXPECT_TRUE(result.is_meta());
    EXPECT_EQ(result.dtype(), dtype);
    EXPECT_EQ(result.shape(), each.run(testing::inputs_of(each)).shape());
    int found = 0;
    for (const RecordedOperation& recorded : recorder.operations()) {
      if (recorded.operation->name != each.name) continue;
      ++found;
      EXPECT_EQ(recorded.operation->flops, each.flops);
      EXPECT_EQ(recorded.operation->keeps_token_order, each.keeps_token_order);
    }
    EXPECT_EQ(found, 1);
  }
}

TEST_P(EveryOperation, ReturnsTheDtypeOfItsInputAndComputesInAtLeastSinglePrecision) {
  const auto& each = GetParam();
  std::vector<Tensor> rounded = testing::inputs_of(each, DType::bf16), single, exact;
  for (const Tensor& input : rounded) {
    single.push_back(input.to(DType::f32));
    exact.push_back(input.to(DType::f64));
  }
  EXPECT_EQ(each.run(exact).dtype(), DType::f64);
  EXPECT_TRUE(testing::close(each.run(single), each.run(exact), 1e-5, 1e-5));
  EXPECT_EQ(each.run(rounded).dtype(), DType::bf16);
  EXPECT_TRUE(testing::close(each.run(rounded).to(DType::f32), each.run(single), 0.02, 0.02));
}

// The error of a central difference is about 1e-10; tests/autograd/gradients_test.cpp derives it.
TEST_P(EveryOperation, HasTheGradientOfCentralDifferences) {
  const auto& each = GetParam();
  if (!each.differentiable) return;
  const autograd::GradientCheck check = autograd::check_gradients(each.run, testing::inputs_of(each, DType::f64));
  EXPECT_LT(check.worst, 1e-8) << "input " << check.input << ", element " << check.element << ": numerical "
                               << check.numerical << ", analytic " << check.analytic;
}

TEST_P(EveryOperation, HasTheSameGradientInFloatAndBfloat16) {
  const auto& each = GetParam();
  if (!each.differentiable) return;
  const std::vector<Tensor> inputs = testing::inputs_of(each, DType::bf16);
  const auto exact = gradients_of(each.run, inputs, DType::f64);
  for (const auto& [dtype, tolerance] : {std::pair(DType::f32, 1e-5), std::pair(DType::bf16, 0.1)}) {
    const auto grads = gradients_of(each.run, inputs, dtype);
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_EQ(grads[i].dtype(), dtype);
      EXPECT_TRUE(testing::close(grads[i].to(DType::f64), exact[i], tolerance, tolerance)) << "input " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, EveryOperation, ::testing::ValuesIn(testing::operation_cases()),
                         [](const auto& info) {
                           return info.param.name + std::string("_") + std::to_string(info.index);
                         });

}  // namespace
}  // namespace vitrail::ops
