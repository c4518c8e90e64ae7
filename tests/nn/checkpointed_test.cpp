// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/checkpointed.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/ops/precision.h"

namespace vitrail::nn {
namespace {

// The result and the gradients of x and of the first weight.
std::vector<Tensor> results(bool through_checkpoint, DType precision) {
  RandomParams params(1);
  Mlp layer({.in_features = 6, .hidden_features = 40, .dropout = 0.5}, ParamSource(params, "mlp"));
  layer.train();
  layer.requires_grad(true);
  Tensor x = Tensor::randn({4, 6}, 2);
  autograd::set_requires_grad(x, true);
  Tensor out;
  {
    const RandomScope random(3, 4, {7, 5, 3, 1});
    const ops::MixedPrecision mixed(precision);
    const auto forward = [&layer](const Tensor& in) { return layer.forward(in); };
    out = through_checkpoint ? checkpointed(forward, x) : forward(x);
  }
  // The backward pass runs where other draws and another precision are active.
  const RandomScope random(8, 9);
  autograd::backward(out, Tensor::full({4, 6}, 1).to(out.dtype()));
  return {out.detach(), autograd::grad_of(x), autograd::grad_of(layer.parameter("fc1.weight"))};
}

TEST(Checkpointed, DrawsAndRoundsAgainAsInTheForwardPass) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    const std::vector<Tensor> plain = results(false, precision), recomputed = results(true, precision);
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(testing::close(recomputed[i], plain[i], 0)) << i;
  }
}

}  // namespace
}  // namespace vitrail::nn
