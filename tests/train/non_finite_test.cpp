// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/non_finite_internal.h"

#include <cmath>

#include "tests/train/training_fixture.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"

namespace vitrail::train {
namespace {

constexpr float kNan = NAN;

TEST(NonFiniteValues, AreDescribedWithTheRangeOfTheOthers) {
  const auto described = [](const std::vector<float>& values) {
    return non_finite_values("x", Tensor::from<float>({static_cast<int64_t>(values.size())}, values));
  };
  EXPECT_EQ(described({1, -2, 0}), "");
  EXPECT_EQ(described({1, kNan, -2}), "x [3] (finite values -2 … 1)");
  EXPECT_EQ(described({-INFINITY, 3}), "x [2] (finite values 3 … 3)");
  EXPECT_EQ(described({kNan, INFINITY}), "x [2] (no finite values)");
  EXPECT_EQ(non_finite_values("x", Tensor::from<int64_t>({2}, {1, 2})), "");
}

TEST(NonFiniteLayer, ImagesAreBeforeWeightsAndWeightsBeforeOutputs) {
  const Recipe recipe = parse_recipe(tiny_recipe("x"), "r.json");
  PreparedModel made = prepare_model(recipe.model, {"a", "b"}, 1);
  made.model.eval();
  Tensor images = Tensor::randn({1, 3, 8, 8}, 2);
  EXPECT_EQ(first_non_finite_layer(made.model, images), "the loss: the output of every layer is finite");
  const Tensor late = made.model.parameter("blocks.1.mlp.fc1.bias");
  const Tensor early = made.model.parameter("blocks.0.norm1.weight");
  const Tensor weight = made.model.parameter("head.weight");
  for (int64_t i = 0; i < weight.numel(); ++i) weight.data<float>()[i] = i % 2 == 0 ? 3e38F : -3e38F;
  EXPECT_TRUE(first_non_finite_layer(made.model, images).starts_with("the output of head")) << "an overflow";
  late.data<float>()[0] = kNan;
  EXPECT_TRUE(first_non_finite_layer(made.model, images).starts_with("the weights of blocks.1.mlp.fc1.bias"));
  early.data<float>()[3] = INFINITY;
  EXPECT_TRUE(first_non_finite_layer(made.model, images).starts_with("the weights of blocks.0.norm1.weight"));
  images.data<float>()[5] = kNan;
  EXPECT_TRUE(first_non_finite_layer(made.model, images).starts_with("the images [1, 3, 8, 8]"));
}

TEST(NonFiniteGradient, MayBeTheSumOfFiniteOnes) {
  EXPECT_TRUE(non_finite_gradient({}).starts_with("the gradient norm: every gradient is finite"));
}

// Late layers get their gradients first, so a value that is not finite began in the last parameter that has one.
TEST(NonFiniteGradient, IsThatOfTheLastParameter) {
  std::vector<optim::Parameter> parameters;
  for (const char* name : {"first", "second", "third", "without"}) {
    Tensor leaf = Tensor::zeros({2});
    autograd::set_requires_grad(leaf, true);
    parameters.push_back({.name = name, .tensor = leaf});
    if (std::string(name) != "without") autograd::variable_of(leaf)->grad = Tensor::from<float>({2}, {1, -3});
  }
  EXPECT_EQ(non_finite_gradient(parameters),
            "the gradient norm: every gradient is finite, but the sum of their squares overflows");
  autograd::grad_of(parameters[0].tensor).data<float>()[0] = kNan;
  EXPECT_EQ(non_finite_gradient(parameters), "the gradient of first [2] (finite values -3 … -3)");
  autograd::grad_of(parameters[1].tensor).data<float>()[1] = INFINITY;
  EXPECT_EQ(non_finite_gradient(parameters), "the gradient of second [2] (finite values 1 … 1)");
}

TEST(NonFiniteLayer, IsTheFirstOneOfThoseThatOverflow) {
  const Recipe recipe = parse_recipe(tiny_recipe("x"), "r.json");
  PreparedModel made = prepare_model(recipe.model, {"a", "b"}, 1);
  made.model.eval();
  const Tensor weight = made.model.parameter("blocks.0.mlp.fc1.weight");
  for (int64_t i = 0; i < weight.numel(); ++i) weight.data<float>()[i] = i % 2 == 0 ? 3e38F : -3e38F;
  const std::string message = first_non_finite_layer(made.model, Tensor::randn({1, 3, 8, 8}, 2));
  EXPECT_TRUE(message.starts_with("the output of blocks.0.")) << message;
}

}  // namespace
}  // namespace vitrail::train
