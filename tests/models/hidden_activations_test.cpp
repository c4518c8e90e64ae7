// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/hidden_activations.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "vitrail/nn/trace.h"

namespace vitrail::models {
namespace {

// The values of a trace by name, and their number.
std::map<std::string, Tensor> traced_values(const VisionTransformer& model, const Tensor& images) {
  std::map<std::string, Tensor> values;
  const nn::TraceScope scope([&](const std::string& name, const Tensor& value) { values[name] = value; });
  model.forward(images);
  return values;
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

// Φ(w · norm2 + b) in double, of the block's own input, for each token and unit.
TEST(HiddenActivations, AreBehindTheActivationOfFc1) {
  const VisionTransformer model = testing::model_of("timm_token");
  const Tensor images = testing::input_of("timm_token");
  const Tensor norm = traced_values(model, images).at("blocks.1.norm2").contiguous();
  const Tensor weight = model.parameter("blocks.1.mlp.fc1.weight").contiguous();
  const Tensor bias = model.parameter("blocks.1.mlp.fc1.bias");
  const int64_t width = weight.size(1), units = weight.size(0), tokens = norm.numel() / width;
  const Tensor want = Tensor::zeros({norm.size(0), norm.size(1), units});
  for (int64_t token = 0; token < tokens; ++token) {
    for (int64_t unit = 0; unit < units; ++unit) {
      double sum = bias.data<float>()[unit];
      for (int64_t i = 0; i < width; ++i)
        sum += double{norm.data<float>()[token * width + i]} * double{weight.data<float>()[unit * width + i]};
      want.data<float>()[token * units + unit] = static_cast<float>(gelu(sum));
    }
  }
  EXPECT_TRUE(testing::close(hidden_activations(model, images, 1), want, 1e-5));
  EXPECT_TRUE(testing::close(hidden_activations(model, images, -1), want, 1e-5));
}

TEST(HiddenActivations, OfSwiGluAreBehindItsGate) {
  const VisionTransformer model = testing::model_of("timm_swiglu");
  const Tensor images = testing::input_of("timm_swiglu");
  EXPECT_TRUE(testing::close(hidden_activations(model, images, 0),
                             traced_values(model, images).at("blocks.0.mlp.gated"), 1e-6));
}

TEST(HiddenActivations, NeedABlockOfTheModel) {
  const VisionTransformer model = testing::model_of("timm_token");
  const Tensor images = testing::input_of("timm_token");
  for (const int64_t block : {2, -3})
    EXPECT_ERROR(testing::error_of([&] { hidden_activations(model, images, block); }), "layer", std::to_string(block));
}

}  // namespace
}  // namespace vitrail::models
