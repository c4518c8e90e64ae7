// SPDX-License-Identifier: Apache-2.0
// What a program does for the class token's rows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "vitrail/infer/compile.h"
#include "vitrail/ops/linear.h"

namespace vitrail::infer {
namespace {

using kernels::Precision;

constexpr int64_t kImages = 3, kTokens = 70, kIn = 48, kOut = 24;

// Of each of the images' tokens, or of the first alone.
Tensor tokens() { return Tensor::randn({kImages, kTokens, kIn}, 1); }
// Eighths of −127 to 127, which int8 holds, the largest among them in each row.
Tensor weight() {
  const Tensor result = Tensor::empty({kOut, kIn});
  for (int64_t i = 0; i < kOut * kIn; ++i) {
    result.data<float>()[i] = static_cast<float>(i % kIn == 0 ? 127 : i * 29 % 63 - 31) / 8;
  }
  return result;
}

Tensor multiplied(Precision precision, bool class_token, bool alone) {
  const ops::Recorder recorder;
  const Tensor input = Tensor::empty({kImages, kTokens, kIn}, DType::f32, Device::meta);
  if (class_token) ops::annotate_tokens(input, {.class_token = true, .head_tokens = 1});
  const Tensor result = ops::linear(alone ? input.narrow(1, 0, 1) : input, weight(), Tensor());
  PackedWeights weights(precision);
  const Program program = compile(recorder, {input}, {result}, weights, {});
  const auto workspace = Storage::allocate(program.workspace_bytes());
  const Tensor x = tokens();
  program.run({.workspace = workspace->data(), .inputs = {x.raw()}});
  const Tensor copy = Tensor::empty(result.shape());
  std::memcpy(copy.data<float>(), workspace->data() + program.outputs()[0].offset, sizeof(float) * copy.numel());
  return copy;
}

// The length of the difference of the first tokens' results, of all images.
double apart(const Tensor& a, const Tensor& b) {
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

TEST(ClassToken, HasRowsOfTwiceTheBitsInInt8) {
  for (const bool alone : {false, true}) {
    const Tensor exact = multiplied(Precision::fp32, false, alone), plain = multiplied(Precision::int8, false, alone),
                 fine = multiplied(Precision::int8, true, alone);
    EXPECT_GT(apart(plain, exact), 0);
    EXPECT_LT(apart(fine, exact), apart(plain, exact) / 50);
    for (int64_t i = 0; i < fine.numel(); ++i) {
      if (i / kOut % fine.size(1) != 0) {
        ASSERT_EQ(fine.data<float>()[i], plain.data<float>()[i]) << i;
      }
    }
  }
}

// Others have bits enough.
TEST(ClassToken, ChangesNothingInOtherPrecisions) {
  for (const Precision precision : {Precision::fp32, Precision::half}) {
    const Tensor with = multiplied(precision, true, false), without = multiplied(precision, false, false);
    EXPECT_EQ(apart(with, without), 0);
  }
}

}  // namespace
}  // namespace vitrail::infer
