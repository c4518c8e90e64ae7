// SPDX-License-Identifier: Apache-2.0
// Which results are reported to a tensor's autograd data: each view and each copy, once.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tests/support/golden.h"
#include "vitrail/tensor/quantized_tensor.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail {
namespace {

// Records the shapes of what is derived from the tensor that has it.
struct Recorder : AutogradSlot {
  void derived(const Tensor& source, Tensor& result) const override {
    EXPECT_EQ(source.autograd().get(), this);
    sources.push_back(source.shape());
    results.push_back(result.shape());
    dtypes.push_back(result.dtype());
    result.set_autograd(next);
  }
  std::shared_ptr<AutogradSlot> next = nullptr;
  mutable std::vector<Shape> sources, results;
  mutable std::vector<DType> dtypes;
};

struct Recorded {
  std::shared_ptr<Recorder> slot = std::make_shared<Recorder>();
  Tensor tensor;
};

Recorded recorded(const Tensor& tensor) {
  Recorded result;
  result.tensor = tensor;
  result.tensor.set_autograd(result.slot);
  return result;
}

TEST(Derived, EachViewAndCopyIsReportedOnce) {
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor&)> derive;
    Shape shape;
    DType dtype = DType::f32;
  };
  // The tensor has the shape [2, 1, 3] and is not contiguous.
  const std::vector<Case> cases{{"view",
                                 [](const Tensor& t) {
                                   return t.view({1, 2, 3});
                                 },
                                 {1, 2, 3}},
                                {"permute",
                                 [](const Tensor& t) {
                                   return t.permute({2, 0, 1});
                                 },
                                 {3, 2, 1}},
                                {"transpose", [](const Tensor& t) { return t.transpose(0, 2); }, {3, 1, 2}},
                                {"narrow", [](const Tensor& t) { return t.narrow(2, 1, 2); }, {2, 1, 2}},
                                {"unsqueeze", [](const Tensor& t) { return t.unsqueeze(1); }, {2, 1, 1, 3}},
                                {"squeeze", [](const Tensor& t) { return t.squeeze(1); }, {2, 3}},
                                {"expand",
                                 [](const Tensor& t) {
                                   return t.expand({2, 5, 3});
                                 },
                                 {2, 5, 3}},
                                {"reshape to a view",
                                 [](const Tensor& t) {
                                   return t.reshape({2, 3});
                                 },
                                 {2, 3}},
                                {"flatten to a view", [](const Tensor& t) { return t.flatten(0, 1); }, {2, 3}},
                                {"contiguous", [](const Tensor& t) { return t.contiguous(); }, {2, 1, 3}},
                                {"clone", [](const Tensor& t) { return t.clone(); }, {2, 1, 3}},
                                {"to f64", [](const Tensor& t) { return t.to(DType::f64); }, {2, 1, 3}, DType::f64}};
  for (const Case& each : cases) {
    const Recorded source = recorded(Tensor::randn({3, 1, 2}, 1).transpose(0, 2));
    ASSERT_FALSE(source.tensor.is_contiguous());
    const Tensor result = each.derive(source.tensor);
    EXPECT_EQ(result.shape(), each.shape) << each.name;
    ASSERT_EQ(source.slot->results.size(), 1u) << each.name;
    EXPECT_EQ(source.slot->sources[0], (Shape{2, 1, 3})) << each.name;
    EXPECT_EQ(source.slot->results[0], each.shape) << each.name;
    EXPECT_EQ(source.slot->dtypes[0], each.dtype) << each.name;
  }
}

// The slot of the first step decides about the second: a result keeps what derived() gave it.
TEST(Derived, OperationsOfTwoStepsAreReportedByBoth) {
  const auto expect = [](const char* name, const std::function<Tensor(const Tensor&)>& derive,
                         const std::vector<Shape>& first, const std::vector<Shape>& second) {
    const Recorded source = recorded(Tensor::randn({3, 2}, 1).transpose(0, 1));
    const auto next = std::make_shared<Recorder>();
    source.slot->next = next;
    const Tensor result = derive(source.tensor);
    EXPECT_EQ(source.slot->results, first) << name;
    EXPECT_EQ(next->results, second) << name;
    EXPECT_EQ(result.autograd().get(), second.empty() ? next.get() : nullptr) << name;
  };
  expect("select", [](const Tensor& t) { return t.select(0, 1); }, {{1, 3}}, {{3}});
  expect("reshape by a copy", [](const Tensor& t) { return t.reshape({6}); }, {{2, 3}}, {{6}});
  expect("transpose", [](const Tensor& t) { return t.transpose(0, 1); }, {{3, 2}}, {});
}

TEST(Derived, WhatIsTheTensorItselfOrHasNoGradientIsNotReported) {
  const Recorded source = recorded(Tensor::randn({2, 3}, 1));
  EXPECT_EQ(source.tensor.contiguous().autograd(), source.slot);
  EXPECT_EQ(source.tensor.to(DType::f32).autograd(), source.slot);
  EXPECT_EQ(source.tensor.to(Device::cpu).autograd(), source.slot);
  EXPECT_EQ(source.tensor.detach().autograd(), nullptr);
  EXPECT_EQ(source.tensor.to(Device::meta).autograd(), nullptr);
  const Tensor target = Tensor::zeros({2, 3});
  target.copy_(source.tensor);
  source.tensor.copy_(Tensor::full({3}, 2));
  EXPECT_TRUE(source.slot->results.empty());
  EXPECT_EQ(target.autograd(), nullptr);
  EXPECT_EQ(source.tensor.autograd(), source.slot);
}

TEST(Derived, ConversionsAndCopiesOfMetaTensorsAreReported) {
  const Recorded source = recorded(Tensor::empty({2, 3}, DType::f32, Device::meta));
  EXPECT_TRUE(source.tensor.clone().is_meta());
  EXPECT_TRUE(source.tensor.to(DType::bf16).is_meta());
  EXPECT_EQ(source.slot->dtypes, (std::vector<DType>{DType::f32, DType::bf16}));
}

}  // namespace
}  // namespace vitrail
