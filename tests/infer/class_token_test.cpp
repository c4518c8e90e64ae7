// SPDX-License-Identifier: Apache-2.0
// In int8, the activations of the CLS token have two terms (high + low) and thus twice the bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "vitrail/infer/compile_internal.h"
#include "vitrail/ops/linear.h"
#include "vitrail/tensor/quantized_tensor.h"

namespace vitrail::infer {
namespace {

using kernels::Precision;

constexpr int64_t kImages = 3, kTokens = 70, kIn = 48, kOut = 24;

Tensor tokens() { return Tensor::randn({kImages, kTokens, kIn}, 1); }
// Multiples of 1/8 with a maximum of 127/8 in each row, which int8 represents exactly.
Tensor int8_exact_weight() {
  const Tensor result = Tensor::empty({kOut, kIn});
  for (int64_t i = 0; i < kOut * kIn; ++i) {
    result.data<float>()[i] = static_cast<float>(i % kIn == 0 ? 127 : i * 29 % 63 - 31) / 8;
  }
  return result;
}

// tokens() · weightᵀ: of all tokens, or of the first token of each image only.
Tensor multiplied(Precision precision, bool class_token, bool first_only) {
  const ops::Recorder recorder;
  const Tensor input = Tensor::empty({kImages, kTokens, kIn}, DType::f32, Device::meta);
  if (class_token) ops::annotate_tokens(input, {.class_token = true, .head_tokens = 1});
  const Tensor result = ops::linear(first_only ? input.narrow(1, 0, 1) : input, int8_exact_weight(), Tensor());
  PackedWeights weights(precision);
  const Program program = compile(recorder, {input}, {result}, weights, {});
  const auto workspace = Storage::allocate(program.workspace_bytes());
  const Tensor x = tokens();
  program.run({.workspace = workspace->data(), .inputs = {x.raw()}});
  const Tensor copy = Tensor::empty(result.shape());
  std::memcpy(copy.data<float>(), workspace->data() + program.outputs()[0].offset, sizeof(float) * copy.numel());
  return copy;
}

// The L2 distance of the results of the first tokens, over all images.
double distance(const Tensor& a, const Tensor& b) {
  double squares = 0;
  for (int64_t image = 0; image < kImages; ++image) {
    for (int64_t c = 0; c < kOut; ++c) {
      const double difference =
          a.data<float>()[image * a.size(1) * kOut + c] - b.data<float>()[image * b.size(1) * kOut + c];
      squares += difference * difference;
    }
  }
  return std::sqrt(squares);
}

TEST(ClassToken, HasTwoTermRowsInInt8) {
  for (const bool first_only : {false, true}) {
    const Tensor exact = multiplied(Precision::fp32, false, first_only),
                 one_term = multiplied(Precision::int8, false, first_only),
                 two_term = multiplied(Precision::int8, true, first_only);
    EXPECT_GT(distance(one_term, exact), 0);
    EXPECT_LT(distance(two_term, exact), distance(one_term, exact) / 50);
    for (int64_t i = 0; i < two_term.numel(); ++i) {
      if (i / kOut % two_term.size(1) != 0) {
        ASSERT_EQ(two_term.data<float>()[i], one_term.data<float>()[i]) << i;
      }
    }
  }
}

TEST(ClassToken, ChangesNothingInOtherPrecisions) {
  for (const Precision precision : {Precision::fp32, Precision::half}) {
    const Tensor with = multiplied(precision, true, false), without = multiplied(precision, false, false);
    EXPECT_EQ(distance(with, without), 0);
  }
}

// The error of the weight is multiplied by the tokens that the heads read, and by the mean of the others of their
// image.
TEST(WeightCorrection, IsForTheTokensOfTheHeadsAndTheMeanOfTheOthers) {
  constexpr int64_t kHeadTokens = 2;
  const Tensor error = Tensor::randn({kOut, kIn}, 7);
  const auto multiplied_by = [&](Precision precision, bool annotated) {
    const ops::Recorder recorder;
    const Tensor input = Tensor::empty({kImages, kTokens, kIn}, DType::f32, Device::meta);
    if (annotated) ops::annotate_tokens(input, {.head_tokens = kHeadTokens});
    QuantizedTensor quantized{Tensor::empty({kOut, kIn}, DType::i8), Tensor::full({kOut}, 0.125)};
    for (int64_t i = 0; i < kOut * kIn; ++i) {
      quantized.values.data<int8_t>()[i] = static_cast<int8_t>(8 * int8_exact_weight().data<float>()[i]);
    }
    QuantizedTensor of_error{Tensor::empty({kOut, kIn}, DType::i8), Tensor::full({kOut}, 5.0 / 127)};
    for (int64_t i = 0; i < kOut * kIn; ++i) {
      of_error.values.data<int8_t>()[i] = static_cast<int8_t>(std::lround(error.data<float>()[i] * 127 / 5));
    }
    quantized.correction = std::make_shared<const QuantizedTensor>(of_error);
    const Tensor result = ops::linear(input, Tensor::from_quantized(quantized), Tensor());
    PackedWeights weights(precision);
    const Program program = compile(recorder, {input}, {result}, weights, {});
    const auto workspace = Storage::allocate(program.workspace_bytes());
    const Tensor x = tokens();
    program.run({.workspace = workspace->data(), .inputs = {x.raw()}});
    const Tensor copy = Tensor::empty(result.shape());
    std::memcpy(copy.data<float>(), workspace->data() + program.outputs()[0].offset, sizeof(float) * copy.numel());
    return copy;
  };
  const Tensor x = tokens(), w = int8_exact_weight();
  const Tensor got = multiplied_by(Precision::int8, true), dense = multiplied_by(Precision::fp32, true);
  double squares = 0, effect = 0;
  for (int64_t i = 0; i < got.numel(); ++i) {
    const int64_t image = i / (kTokens * kOut), token = i / kOut % kTokens, out = i % kOut;
    double product = 0, correction = 0, exact = 0;
    for (int64_t p = 0; p < kIn; ++p) {
      const double value = x.data<float>()[(image * kTokens + token) * kIn + p];
      double mean = 0;
      for (int64_t t = kHeadTokens; t < kTokens; ++t) {
        mean += x.data<float>()[(image * kTokens + t) * kIn + p] / static_cast<double>(kTokens - kHeadTokens);
      }
      product += w.data<float>()[out * kIn + p] * value;
      correction += error.data<float>()[out * kIn + p] * (token < kHeadTokens ? value : mean);
      exact += error.data<float>()[out * kIn + p] * value;
    }
    squares += std::pow(got.data<float>()[i] - product - correction, 2);
    effect += correction * correction;
    EXPECT_NEAR(dense.data<float>()[i], product + exact, 0.6) << "fp32 corrects each token";
  }
  // What is left is the rounding of x, with a scale of about 5 / 255, and of E.
  EXPECT_LT(std::sqrt(squares / static_cast<double>(got.numel())), 0.25);
  EXPECT_GT(std::sqrt(effect / static_cast<double>(got.numel())), 1);
}

}  // namespace
}  // namespace vitrail::infer
