// SPDX-License-Identifier: Apache-2.0
// Gradients of a Tensor's own methods: views and copies.
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::autograd {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

// A view is linear, so a central difference has only the rounding error ε · |f| / h = 1e-16 · 30 / 1e-5 = 3e-10.
void expect_correct_gradients(const Function& view, const Shape& shape = {2, 3, 4}) {
  const GradientCheck check = check_gradients([&](const std::vector<Tensor>& in) { return view(in[0]); },
                                              {Tensor::randn(shape, 1, DType::f64)});
  EXPECT_LT(check.worst, 1e-9) << "element " << check.element << ": numerical " << check.numerical << ", analytic "
                               << check.analytic;
}

TEST(Views, AreDifferentiable) {
  expect_correct_gradients([](const Tensor& x) { return x.view({6, 4}); });
  expect_correct_gradients([](const Tensor& x) { return x.permute({2, 0, 1}); });
  expect_correct_gradients([](const Tensor& x) { return x.transpose(0, 2); });
  expect_correct_gradients([](const Tensor& x) { return x.narrow(1, 1, 2); });
  expect_correct_gradients([](const Tensor& x) { return x.select(1, 2); });
  expect_correct_gradients([](const Tensor& x) { return x.unsqueeze(1); });
  expect_correct_gradients([](const Tensor& x) { return x.narrow(0, 1, 1).squeeze(0); });
  expect_correct_gradients([](const Tensor& x) { return x.flatten(1); });
  expect_correct_gradients([](const Tensor& x) { return x.reshape({-1}); });
  expect_correct_gradients([](const Tensor& x) { return x.expand({5, 3, 4}); }, {1, 3, 4});
  expect_correct_gradients([](const Tensor& x) { return x.expand({2, 3, 4}); }, {3, 1});
}

TEST(Views, OfViewsAreDifferentiable) {
  expect_correct_gradients([](const Tensor& x) { return x.permute({2, 0, 1}).select(0, 1).narrow(1, 1, 2); });
  expect_correct_gradients([](const Tensor& x) { return x.narrow(2, 1, 2).permute({1, 2, 0}).narrow(0, 0, 2); });
  expect_correct_gradients([](const Tensor& x) { return x.transpose(0, 2).reshape({6, 4}); });
  expect_correct_gradients(
      [](const Tensor& x) {
        return x.expand({5, 3, 4}).permute({1, 0, 2}).narrow(1, 1, 3);
      },
      {1, 3, 4});
  expect_correct_gradients([](const Tensor& x) { return x.narrow(1, 1, 2).view({2, 1, 2, 4}); });
}

TEST(Copies, AreDifferentiable) {
  expect_correct_gradients([](const Tensor& x) { return x.clone(); });
  expect_correct_gradients([](const Tensor& x) { return x.transpose(0, 1).contiguous(); });
}

TEST(Copies, ToAnotherDtypeConvertTheGradientBack) {
  Tensor x = Tensor::randn({2, 3}, 1);
  set_requires_grad(x, true);
  backward(x.to(DType::f64), Tensor::randn({2, 3}, 2, DType::f64));
  EXPECT_EQ(grad_of(x).dtype(), DType::f32);
  EXPECT_TRUE(testing::close(grad_of(x), Tensor::randn({2, 3}, 2), 1e-7));
}

TEST(Copies, OfAResultInAnotherDtypeConvertItsGradientBack) {
  Tensor x = Tensor::randn({2, 3}, 1);
  set_requires_grad(x, true);
  const Tensor grad = Tensor::randn({2, 3}, 2);
  backward(ops::activation(x, kernels::Activation::gelu), grad);
  const Tensor want = grad_of(x).clone();
  clear_grad(x);
  backward(ops::activation(x, kernels::Activation::gelu).to(DType::f64), grad.to(DType::f64));
  EXPECT_TRUE(testing::close(grad_of(x), want, 0));
}

TEST(Views, OfOneTensorSumTheirGradients) {
  expect_correct_gradients([](const Tensor& x) { return ops::add(x.narrow(1, 0, 2), x.narrow(1, 1, 2)); });
}

TEST(Detach, LeavesTheGraph) {
  Tensor x = Tensor::randn({2, 3}, 1);
  set_requires_grad(x, true);
  const Tensor detached = ops::add(x, x).detach();
  EXPECT_FALSE(requires_grad(detached));
  EXPECT_EQ(x.detach().storage(), x.storage());
}

// Values of a gradient through views, each element by itself.
TEST(Views, GiveEachElementItsOwnGradient) {
  const auto gradient = [](const Function& view, const Shape& shape, const Tensor& grad) {
    Tensor x = Tensor::randn(shape, 1, DType::f64);
    set_requires_grad(x, true);
    backward(view(x), grad);
    const Tensor of_x = grad_of(x).contiguous();
    return std::vector<double>(of_x.data<double>(), of_x.data<double>() + of_x.numel());
  };
  const Tensor two_by_two = Tensor::from<double>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(gradient([](const Tensor& x) { return x.narrow(1, 1, 2); }, {2, 4}, two_by_two),
            (std::vector<double>{0, 1, 2, 0, 0, 3, 4, 0}));
  EXPECT_EQ(gradient([](const Tensor& x) { return x.transpose(0, 1); }, {2, 2}, two_by_two),
            (std::vector<double>{1, 3, 2, 4}));
  EXPECT_EQ(gradient(
                [](const Tensor& x) {
                  return x.expand({2, 2});
                },
                {2, 1}, two_by_two),
            (std::vector<double>{3, 7}));
  EXPECT_EQ(gradient(
                [](const Tensor& x) {
                  return x.expand({2, 2});
                },
                {1, 2}, two_by_two),
            (std::vector<double>{4, 6}));
  EXPECT_EQ(gradient(
                [](const Tensor& x) {
                  return x.narrow(0, 1, 1).expand({2, 2});
                },
                {3, 1}, two_by_two),
            (std::vector<double>{0, 10, 0}));
  EXPECT_EQ(gradient(
                [](const Tensor& x) {
                  return x.select(0, 1).view({2, 2});
                },
                {2, 4}, two_by_two),
            (std::vector<double>{0, 0, 0, 0, 1, 2, 3, 4}));
}

// A running sum in half precision would be rounded at each step.
TEST(Views, SumExpandedAxesInDouble) {
  Tensor x = Tensor::zeros({1, 2}, DType::f16);
  set_requires_grad(x, true);
  backward(x.expand({4096, 2}), Tensor::full({4096, 2}, 0.75, DType::f16));
  EXPECT_EQ(grad_of(x).dtype(), DType::f16);
  EXPECT_TRUE(testing::close(grad_of(x), Tensor::full({1, 2}, 3072), 0));
}

TEST(Views, NameTheirNodes) {
  Tensor x = Tensor::zeros({2, 3});
  set_requires_grad(x, true);
  const auto name = [](const Tensor& tensor) { return variable_of(tensor)->producer->name; };
  EXPECT_EQ(name(x.view({6})), "view");
  EXPECT_EQ(name(x.narrow(1, 0, 2)), "view");
  EXPECT_EQ(name(x.clone()), "copy");
  EXPECT_EQ(name(x.to(DType::f64)), "copy");
}

TEST(Views, OfNoElementsHaveNoGradients) {
  Tensor x = Tensor::randn({0, 3}, 1, DType::f64);
  set_requires_grad(x, true);
  backward(x.transpose(0, 1), Tensor::zeros({3, 0}, DType::f64));
  EXPECT_EQ(grad_of(x).shape(), (Shape{0, 3}));
}

}  // namespace
}  // namespace vitrail::autograd
