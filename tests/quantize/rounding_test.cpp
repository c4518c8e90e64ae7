// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "vitrail/infer/session.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/nn/copied_params.h"
#include "vitrail/nn/trace.h"
#include "vitrail/quantize/block_layers_internal.h"
#include "vitrail/quantize/gptq_internal.h"
#include "vitrail/quantize/output_hessians_internal.h"

namespace vitrail::quantize {
using namespace infer;
namespace {

using kernels::Precision;
using testing::input_of;
using testing::model_of;
using testing::writable_model_of;

TEST(ToInt8, RoundsToNearestAndRestoresADequantizedWeight) {
  const Tensor weight = Tensor::randn({5, 40}, 1);
  weight.select(0, 2).copy_(Tensor::zeros({40}));
  const QuantizedTensor quantized = to_int8(weight);
  const Tensor dequantized = dequantize(quantized);
  for (int64_t i = 0; i < weight.numel(); ++i) {
    const float half_scale = quantized.scales.data<float>()[i / 40] / 2;
    EXPECT_NEAR(dequantized.data<float>()[i], weight.data<float>()[i], half_scale * 1.0001F) << i;
  }
  EXPECT_TRUE(testing::close(to_int8(dequantized).values, quantized.values, 0));
}

TEST(ToInt8, ThrowsAnErrorThatNamesAnElementThatIsNotFinite) {
  const Tensor weight = Tensor::randn({5, 40}, 1);
  weight.data<float>()[3 * 40 + 7] = std::numeric_limits<float>::infinity();
  const std::string message = testing::error_of([&] { to_int8(weight); });
  EXPECT_TRUE(testing::contains(message, "int8 weight [3, 7]")) << message;
}

// Quantised weights by layer.
using Weights = std::map<std::string, QuantizedTensor>;

// The L2 error of a session's logits.  `weights` replace those of their layers in the model.
double error_of(const std::string& fixture, const models::VisionTransformer& model, const SessionOptions& options,
                const Weights& weights = {}) {
  std::map<std::string, Tensor> replaced;
  for (const auto& [layer, weight] : weights) replaced[layer + ".weight"] = Tensor::from_quantized(weight);
  nn::CopiedParams copies(model, replaced);
  const Session session(models::VisionTransformer(model.config(), ParamSource(copies)), options);
  const Tensor input = input_of(fixture);
  return std::sqrt(testing::squared_error(session.logits(input), model_of(fixture).forward(input)));
}

// Weights of correlated inputs compensate each other's rounding errors.
TEST(GptqRound, HasLessErrorThanRoundingToNearest) {
  for (const std::string fixture : {"timm_token", "timm_swiglu", "torch_encoder_post_norm"}) {
    models::VisionTransformer nearest = writable_model_of(fixture), rounded = model_of(fixture);
    const std::map<std::string, Tensor> originals = gptq_round(rounded, {input_of(fixture)});
    ASSERT_EQ(originals.size(), static_cast<size_t>(4 * rounded.config().depth));
    Weights rounded_weights, nearest_weights;
    for (const auto& [layer, original] : originals) {
      const Tensor parameter = nearest.parameter(layer + ".weight");
      EXPECT_TRUE(testing::close(original, parameter, 0)) << layer;
      parameter.copy_(dequantize(to_int8(parameter)));
      rounded_weights[layer] = with_correction(original, rounded.parameter(layer + ".weight"));
      nearest_weights[layer] = with_correction(original, parameter);
    }
    const double corrected = error_of(fixture, rounded, {.precision = Precision::int8}, rounded_weights);
    EXPECT_LT(corrected, 0.6 * error_of(fixture, nearest, {.precision = Precision::int8})) << fixture;
    // In the SwiGLU model, with few tokens and random weights, most of the error is that of the activations.
    if (fixture == "timm_swiglu") continue;
    EXPECT_LT(corrected, 0.9 * error_of(fixture, nearest, {.precision = Precision::int8}, nearest_weights)) << fixture;
  }
}

TEST(GptqRound, InputsThatAreNotFiniteAreAnError) {
  models::VisionTransformer model = model_of("timm_token");
  const Tensor images = input_of("timm_token").clone();
  images.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  const std::string message = testing::error_of([&] { gptq_round(model, {images}); });
  EXPECT_TRUE(testing::contains(message, "finite inputs, got NaN or infinity in blocks.0")) << message;
}

// Files and packing then keep the values that GPTQ chose.
TEST(GptqRound, LeavesWeightsThatQuantizationRestores) {
  models::VisionTransformer model = model_of("timm_token");
  for (const auto& [layer, original] : gptq_round(model, {input_of("timm_token")})) {
    const Tensor weight = model.parameter(layer + ".weight");
    EXPECT_TRUE(testing::close(dequantize(to_int8(weight)), weight, 0, 1e-6)) << layer;
    EXPECT_FALSE(testing::close(weight, original, 1e-6)) << layer;
  }
}

TEST(WithCorrection, IsTheOriginalWeightWithinHalfAScaleOfTheCorrection) {
  models::VisionTransformer model = model_of("timm_token");
  for (const auto& [layer, original] : gptq_round(model, {input_of("timm_token")})) {
    const Tensor after = model.parameter(layer + ".weight");
    const QuantizedTensor weight = with_correction(original, after);
    const Tensor corrected = dequantize(weight);
    for (int64_t i = 0; i < corrected.numel(); ++i) {
      const float half_scale = weight.correction->scales.data<float>()[i / corrected.size(1)] / 2;
      constexpr float kRounding = 1.2e-7F;  // two f32 roundings of values below 1
      EXPECT_NEAR(corrected.data<float>()[i], original.data<float>()[i], half_scale + kRounding) << i;
    }
  }
}

// The correction reduces the error of an int8 session.  An fp32 session applies it to all tokens.
TEST(WithCorrection, ReducesTheErrorOfASession) {
  for (const std::string fixture :
       {"timm_token", "timm_swiglu", "timm_avg", "timm_distilled", "timm_dinov3_qkvb", "timm_eva02_clip_base"}) {
    models::VisionTransformer model = model_of(fixture);
    Weights weights;
    for (const auto& [layer, original] : gptq_round(model, {input_of(fixture)})) {
      weights[layer] = with_correction(original, model.parameter(layer + ".weight"));
    }
    const double without = error_of(fixture, model, {.precision = Precision::int8});
    EXPECT_LT(error_of(fixture, model, {.precision = Precision::int8}, weights), 0.9 * without) << fixture;
    EXPECT_LT(error_of(fixture, model, {}, weights), 0.05 * without) << fixture;
  }
}

TEST(ToInt8, ErrorsNameTheShapeAndTheElement) {
  EXPECT_ERROR(testing::error_of([] { to_int8(Tensor::zeros({3})); }), "int8 weight", "[3]");
  const Tensor weight = Tensor::randn({5, 40}, 1);
  weight.data<float>()[4 * 40 + 39] = -std::numeric_limits<float>::infinity();
  EXPECT_ERROR(testing::error_of([&] { to_int8(weight); }), "int8 weight [4, 39]", "-inf");
}

TEST(ToInt8, TakesEveryFloatingTypeAndLayout) {
  const Tensor weight = Tensor::randn({5, 8}, 1).to(DType::bf16).to(DType::f32);
  const QuantizedTensor want = to_int8(weight);
  EXPECT_EQ(want.values.shape(), (Shape{5, 8}));
  EXPECT_EQ(want.scales.shape(), (Shape{5}));
  EXPECT_EQ(want.correction, nullptr);
  for (const Tensor& other :
       {weight.to(DType::bf16), weight.to(DType::f64), weight.transpose(0, 1).contiguous().transpose(0, 1)}) {
    const QuantizedTensor got = to_int8(other);
    EXPECT_TRUE(testing::close(got.values, want.values, 0));
    EXPECT_TRUE(testing::close(got.scales, want.scales, 0));
  }
}

TEST(WithCorrection, QuantizesTheRoundedWeightAndItsError) {
  const Tensor original = Tensor::from<float>({1, 3}, {1.27F, -0.5F, 0.303F}),
               rounded = Tensor::from<float>({1, 3}, {1.27F, -0.5F, 0.3F});
  const QuantizedTensor weight = with_correction(original, rounded);
  EXPECT_TRUE(testing::close(weight.values, Tensor::from<int8_t>({1, 3}, {127, -50, 30}), 0));
  EXPECT_NEAR(weight.scales.data<float>()[0], 0.01, 1e-8);
  ASSERT_NE(weight.correction, nullptr);
  EXPECT_NEAR(
      weight.correction->scales.data<float>()[0] * static_cast<float>(weight.correction->values.data<int8_t>()[2]),
      0.003, 1e-7)
      << "the original minus the rounded weight";
  EXPECT_EQ(weight.correction->values.data<int8_t>()[0], 0);
  EXPECT_EQ(original.data<float>()[2], 0.303F) << "the input is unchanged";
}

// Each layer is rounded with the Hessian of its own input and output.
TEST(GptqRound, RoundsEachLayerByItsHessians) {
  models::VisionTransformer rounded = model_of("timm_token"), model = writable_model_of("timm_token");
  const Tensor images = input_of("timm_token");
  const auto originals = gptq_round(rounded, {images});
  std::map<std::string, Tensor> traced;
  {
    const nn::TraceScope scope([&](const std::string& point, const Tensor& x) { traced[point] = x.clone(); });
    model.forward_features(images);
  }
  std::vector<std::string> layers;
  for (const auto& [layer, original] : originals) layers.push_back(layer);
  const auto outputs = output_hessians(model, {images}, layers);
  for (int64_t block = 0; block < 2; ++block) {
    for (const auto& [layer, point] : traced_inputs(model, block)) {
      const Tensor x = centered_tokens(traced.at(point), model.num_head_tokens());
      const int64_t in = x.size(2);
      const Tensor hessian = Tensor::zeros({in, in}), weight = model.parameter(layer + ".weight").clone();
      kernels::gemm(true, false, in, in, x.numel() / in, x.data<float>(), in, x.data<float>(), in, true,
                    hessian.data<float>(), in);
      gptq_round_weight(weight, hessian, outputs.at(layer));
      EXPECT_TRUE(testing::close(rounded.parameter(layer + ".weight"), weight, 1e-6, 1e-6)) << layer;
      EXPECT_TRUE(testing::close(originals.at(layer), model.parameter(layer + ".weight"), 0)) << layer;
    }
  }
}

TEST(GptqRound, TheErrorNamesTheLayerAndItsInput) {
  models::VisionTransformer model = model_of("timm_token");
  const Tensor images = input_of("timm_token").clone();
  images.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_ERROR(testing::error_of([&] { gptq_round(model, {images}); }), "blocks.0.attn.proj",
               "NaN or infinity in blocks.0.attn.norm");
}

}  // namespace
}  // namespace vitrail::quantize
