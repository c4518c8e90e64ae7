// SPDX-License-Identifier: Apache-2.0
// Linear layers with another bias, and their traces.
#include "vitrail/nn/linear.h"

#include <gtest/gtest.h>

#include "tests/nn/traced_layers.h"
#include "tests/support/golden.h"
#include "vitrail/ops/linear.h"

namespace vitrail::nn {
namespace {

using kernels::Activation;

TEST_F(Layers, LinearTakesAnotherBiasAndTracesWhatPrecedesTheActivation) {
  const Linear layer(3, 2, true, source("fc"));
  const Tensor x = Tensor::randn({4, 3}, 1), other = Tensor::from<float>({2}, {5, -7});
  const Tensor weight = layer.weight(), bias = layer.bias();
  EXPECT_EQ(layer.in_features(), 3);
  EXPECT_EQ(layer.out_features(), 2);
  EXPECT_TRUE(testing::close(layer.forward_with_bias(x, other), ops::linear(x, weight, other), 0));
  EXPECT_TRUE(testing::close(layer.forward_with_bias(x, {}), ops::linear(x, weight, bias), 0));
  Tensor out;
  const Values values = traced_by([&] { out = layer.forward(x, Activation::relu); });
  EXPECT_TRUE(testing::close(values.at("fc"), ops::linear(x, weight, bias), 0));
  EXPECT_TRUE(testing::close(out, ops::linear(x, weight, bias, Activation::relu), 0));
  EXPECT_TRUE(testing::close(layer.forward(x, Activation::relu), out, 0));
  EXPECT_TRUE(traced_by([&] { layer.forward_with_bias(x, other); }).contains("fc"));
  EXPECT_FALSE(Linear(3, 2, false, source()).bias().defined());
}

}  // namespace
}  // namespace vitrail::nn
