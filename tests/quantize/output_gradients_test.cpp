// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/output_gradients.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/models.h"

namespace vitrail::quantize {
namespace {

using testing::input_of;
using testing::model_of;
using testing::squared_error;

// vᵀ G v predicts the squared change of the logits when v is added to one column of the weight, summed over the
// columns. The test measures that change by finite differences.  G averages over 512 random directions, so its standard
// error is √(2 / 512) = 6 %; the tolerance is four times that.
TEST(OutputGradients, PredictTheChangeOfTheLogitsWithTheWeight) {
  models::VisionTransformer model = model_of("timm_token");
  const Tensor image = input_of("timm_token").narrow(0, 0, 1);
  for (const std::string layer : {"blocks.0.attn.qkv", "blocks.1.mlp.fc1"}) {
    const Tensor gradients = output_gradients(model, {image}, {layer}).at(layer), before = model.forward(image),
                 weight = model.parameter(layer + ".weight");
    const int64_t out = weight.size(0), in = weight.size(1);
    const Tensor v = Tensor::randn({out}, 3);
    double predicted = 0, measured = 0;
    for (int64_t a = 0; a < out; ++a) {
      for (int64_t b = 0; b < out; ++b) {
        predicted += v.data<float>()[a] * double{gradients.data<float>()[a * out + b]} * v.data<float>()[b] / 512;
      }
    }
    constexpr float kEpsilon = 1e-2F;
    for (int64_t column = 0; column < in; ++column) {
      const Tensor original = weight.clone();
      for (int64_t r = 0; r < out; ++r) weight.data<float>()[r * in + column] += kEpsilon * v.data<float>()[r];
      measured += squared_error(model.forward(image), before) / (kEpsilon * kEpsilon);
      weight.copy_(original);
    }
    EXPECT_NEAR(predicted / measured, 1, 0.25) << layer;
  }
}

}  // namespace
}  // namespace vitrail::quantize
