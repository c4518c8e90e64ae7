// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/random.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/quantize/output_hessians_internal.h"

namespace vitrail::quantize {
namespace {

using testing::input_of;
using testing::model_of;
using testing::squared_error;

// vᵀ G v / 512 is the squared change of the logits when v is added to one column of the weight, summed over columns.
// The test measures that change by finite differences.  The directions are random: a mean of 512 squares of normal
// draws has a relative deviation of √(2 / 512) = 6 %, so the tolerance of 25 % is four deviations.
TEST(OutputHessians, PredictTheChangeOfTheLogits) {
  models::VisionTransformer model = model_of("timm_token");
  const Tensor image = input_of("timm_token").narrow(0, 0, 1);
  for (const std::string layer : {"blocks.0.attn.qkv", "blocks.1.mlp.fc1"}) {
    const Tensor hessian = output_hessians(model, {image}, {layer}).at(layer), logits = model.forward(image),
                 weight = model.parameter(layer + ".weight");
    const int64_t out = weight.size(0), in = weight.size(1);
    const Tensor v = Tensor::randn({out}, 3);
    double predicted = 0, measured = 0;
    for (int64_t a = 0; a < out; ++a) {
      for (int64_t b = 0; b < out; ++b) {
        predicted += v.data<float>()[a] * double{hessian.data<float>()[a * out + b]} * v.data<float>()[b] / 512;
      }
    }
    constexpr float kStep = 1e-2F;
    for (int64_t column = 0; column < in; ++column) {
      const Tensor original = weight.clone();
      for (int64_t r = 0; r < out; ++r) weight.data<float>()[r * in + column] += kStep * v.data<float>()[r];
      measured += squared_error(model.forward(image), logits) / (kStep * kStep);
      weight.copy_(original);
    }
    EXPECT_NEAR(predicted / measured, 1, 0.25) << layer;
  }
}

// The images of a batch count as those of batches of one image do.
TEST(OutputHessians, AreThoseOfAllImagesOfAllBatches) {
  models::VisionTransformer model = model_of("timm_token");
  const std::string layer = "blocks.1.mlp.fc1";
  const Tensor first = input_of("timm_token").narrow(0, 0, 1), second = Tensor::randn(first.shape(), 1),
               batch = ops::cat({first, second}, 0);
  const Tensor expected = output_hessians(model, {batch}, {layer}).at(layer);
  EXPECT_TRUE(testing::close(output_hessians(model, {first, second}, {layer}).at(layer), expected, 0));
  EXPECT_FALSE(testing::close(output_hessians(model, {first, first}, {layer}).at(layer), expected, 1e-3));
  EXPECT_FALSE(autograd::requires_grad(model.parameter(layer + ".weight")));
}

// 512 directions of three images are 171 for each: the sums of g gᵀ over the gradients of these projections.
TEST(OutputHessians, SumTheGradientsOfTheirDirections) {
  models::VisionTransformer model = model_of("timm_token");
  const std::string layer = "blocks.1.attn.proj";
  const Tensor one = input_of("timm_token").narrow(0, 0, 1),
               batch = ops::cat({one, Tensor::randn(one.shape(), 1), Tensor::randn(one.shape(), 2)}, 0);
  const Tensor got = output_hessians(model, {batch}, {layer}).at(layer);
  const Tensor weight = model.parameter(layer + ".weight");
  const int64_t out = weight.size(0), in = weight.size(1);
  std::vector<double> want(static_cast<size_t>(out * out));
  RandomStream random(random_key("output_gradients"));
  model.requires_grad(true);
  for (int64_t pass = 0; pass < 3 * 171; ++pass) {
    const Tensor output = model.forward(batch.narrow(0, pass / 171, 1)), direction = Tensor::empty(output.shape());
    for (int64_t i = 0; i < direction.numel(); ++i) direction.data<float>()[i] = static_cast<float>(random.normal());
    autograd::backward(output, direction);
    const Tensor g = autograd::grad_of(model.parameter(layer + ".weight")).contiguous();
    for (int64_t a = 0; a < out; ++a) {
      for (int64_t b = 0; b < out; ++b) {
        for (int64_t i = 0; i < in; ++i) {
          want[a * out + b] += double{g.data<float>()[a * in + i]} * g.data<float>()[b * in + i];
        }
      }
    }
    for (const nn::NamedTensor& parameter : model.named_parameters()) autograd::clear_grad(parameter.tensor);
  }
  model.requires_grad(false);
  double largest = 0;
  for (const double value : want) largest = std::max(largest, std::abs(value));
  for (int64_t i = 0; i < out * out; ++i) EXPECT_NEAR(got.data<float>()[i], want[i], 1e-4 * largest) << i;
}

}  // namespace
}  // namespace vitrail::quantize
