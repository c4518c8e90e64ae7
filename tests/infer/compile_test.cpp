// SPDX-License-Identifier: Apache-2.0
// Functions of views in compiled programs.  Those that a program cannot express are errors that say what it needs.
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/recorder.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::infer {
namespace {

using Compute = std::function<Tensor(const Tensor& x)>;

Tensor compiled(const Compute& compute, const Tensor& x) {
  RandomParams random(1);
  nn::Linear layer(4, 4, true, ParamSource(random));
  const FunctionSession session(layer, [&](const NamedTensors& in) -> NamedTensors {
    return {{"y", compute(in[0].tensor)}};
  });
  return session.run({{"x", x}})[0].tensor;
}

std::string message_of(const Compute& compute, const Tensor& x) {
  return testing::error_of([&] { compiled(compute, x); });
}

void expect_eager_result(const Compute& compute, const Tensor& x) {
  EXPECT_TRUE(testing::close(compiled(compute, x), compute(x), 1e-5));
}

TEST(Compile, ViewsOfResultsAreNoOutputs) {
  const Tensor x = Tensor::randn({2, 3, 4}, 1);
  const auto transposed = [](const Tensor& t) { return ops::add(t, t).transpose(1, 2); };
  EXPECT_TRUE(testing::contains(message_of(transposed, x), "contiguous outputs, got [2, 4, 3]"));
  expect_eager_result([&](const Tensor& t) { return ops::add(transposed(t), transposed(t)); }, x);
}

TEST(Compile, MeansAndBiasesMayBeTransposed) {
  const auto biased = [](const Tensor& t, const Tensor& bias) { return ops::attention(t, t, t, 1, bias).out; };
  const auto twice = [](const Tensor& t) { return ops::add(t, t); };
  const Tensor x = Tensor::randn({1, 2, 5, 5}, 1), tokens = Tensor::randn({2, 3, 4}, 2);
  expect_eager_result([&](const Tensor& t) { return biased(t, twice(t)); }, x);
  expect_eager_result([&](const Tensor& t) { return biased(t, twice(t).transpose(2, 3)); }, x);
  for (const int axis : {0, 1, 2}) {
    expect_eager_result([&](const Tensor& t) { return ops::mean(twice(t), axis); }, tokens);
    expect_eager_result([&](const Tensor& t) { return ops::mean(twice(t).transpose(1, 2), axis); }, tokens);
  }
}

// Whether or not the addition becomes a part of the layer.
TEST(Compile, AResidualIsAddedBehindTheActivation) {
  using kernels::Activation;
  const Tensor x = Tensor::randn({2, 3, 4}, 1);
  for (const Activation activation : {Activation::none, Activation::gelu, Activation::relu, Activation::silu}) {
    for (const bool scaled : {false, true}) {
      expect_eager_result(
          [&](const Tensor& t) {  // a session takes the weights, so that each call has its own
            const Tensor weight = Tensor::randn({4, 4}, 2), bias = Tensor::randn({4}, 3);
            const Tensor branch = ops::linear(t, weight, bias, activation);
            return ops::residual_add(t, branch, scaled ? Tensor::randn({4}, 4) : Tensor());
          },
          x);
    }
  }
}

TEST(Compile, IdsOfAnEmbeddingAreAnInput) {
  const Tensor ids = Tensor::from<int64_t>({2, 3}, {0, 1, 2, 3, 4, 0}), weight = Tensor::randn({5, 4}, 1);
  expect_eager_result([&](const Tensor& t) { return ops::embedding(t, weight); }, ids);
  const std::string message =
      message_of([&](const Tensor& t) { return ops::embedding(t.transpose(0, 1), weight); }, ids);
  EXPECT_TRUE(testing::contains(message, "an embedding of ids that are an input")) << message;
}

TEST(Compile, OperationsHaveALimitOfTensors) {
  for (const size_t count : {8, 9}) {
    const auto sum = [count](const Tensor& x) {
      ops::Operation operation{.name = "sum_of_all", .shape = x.shape()};
      operation.kernel = [](auto in, auto out) {
        for (int64_t i = 0; i < out[0].tensor->numel(); ++i) {
          out[0].data[i] = 0;
          for (const auto& each : in) out[0].data[i] += each.data[i];
        }
      };
      return ops::apply(std::move(operation), std::vector<Tensor>(count, x));
    };
    const Tensor x = Tensor::full({3}, 2);
    if (count == 8) {
      EXPECT_TRUE(testing::close(compiled(sum, x), Tensor::full({3}, 16), 0));
    } else {
      EXPECT_TRUE(testing::contains(message_of(sum, x), "at most 8 inputs and outputs of sum_of_all, got 9"));
    }
  }
}

}  // namespace
}  // namespace vitrail::infer
