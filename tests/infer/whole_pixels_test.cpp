#include "vitrail/infer/whole_pixels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "vitrail/base/error.h"
#include "vitrail/infer/compile.h"
#include "vitrail/infer/session.h"
#include "vitrail/kernels/patchify.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/patchify.h"

namespace vitrail::infer {
namespace {

using kernels::Precision;
using testing::model_of;

// From one byte to the next it is 1/64: a weight is rounded alike with and without this step in it.
const image::Normalizer& normalizer() {
  static const image::Normalizer result{image::EvalTransform{.mean = {0.43, 0.45, 0.4}, .std = {64.0 / 255}}};
  return result;
}

// Slow ramps, in which neighbours are rounded alike as in photographs, each of another brightness, normalised:
// [count, 3, height, width].
Tensor pictures(int64_t count, int64_t height, int64_t width) {
  const Tensor result = Tensor::empty({count, 3, height, width});
  for (int64_t p = 0; p < count; ++p) {
    image::Image bytes = image::make_image(width, height, 3);
    for (int64_t i = 0; i < width * height; ++i) {
      for (int64_t c = 0; c < 3; ++c) {
        bytes.pixels[i * 3 + c] = static_cast<uint8_t>((200 - 60 * c + 19 * p + (i / width + i % width) / 4) % 256);
      }
    }
    normalizer().apply_into(bytes, result.data<float>() + p * 3 * height * width);
  }
  return result;
}

double distance(const Tensor& a, const Tensor& b) {
  double apart = 0, length = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.data<float>()[i], y = b.data<float>()[i];
    apart += (x - y) * (x - y);
    length += y * y;
  }
  return std::sqrt(apart / length);
}

// Weights that bf16 holds once the step of a channel is in them: eighths of −4 to 4, over the step.
Tensor weight_of_eighths() {
  const Tensor weight = Tensor::randn({24, 3, 8, 8}, 3);
  for (int64_t i = 0; i < weight.numel(); ++i) {
    const double step = normalizer().pixel_scales()[i / 64 % 3].step;
    const double eighths = std::clamp(std::nearbyint(8.0 * weight.data<float>()[i]), -32.0, 32.0);
    weight.data<float>()[i] = static_cast<float>(eighths / 8 / step);
  }
  return weight;
}

// The patch embedding's product in bf16, with or without whole pixels.
Tensor embedded(const Tensor& images, const Tensor& weight, const Tensor& bias, bool whole) {
  const ops::Recorder recorder;
  const Tensor input = Tensor::empty(images.shape(), DType::f32, Device::meta);
  const Tensor result = ops::linear(ops::patchify(input, 8, 8), weight.view({24, 192}), bias);
  std::vector<ops::Operation> operations = recorder.operations();
  if (whole) WholePixels(weight, bias, normalizer().pixel_scales()).rewrite(operations);
  PackedWeights weights(Precision::bf16);
  const Program program = compile(std::move(operations), input, {result}, weights, {.attention = Precision::bf16});
  const auto workspace = Storage::allocate(program.workspace_bytes());
  program.run({workspace->data(), images.data<float>()});
  const Tensor copy = Tensor::empty(result.shape());
  std::memcpy(copy.data<float>(), workspace->data() + program.outputs()[0].offset, sizeof(float) * copy.numel());
  return copy;
}

TEST(WholePixels, ReachABf16ProductExactly) {
  const Tensor images = pictures(2, 16, 24);
  for (const Tensor& bias : {Tensor::randn({24}, 5), Tensor()}) {
    const Tensor exact = ops::linear(ops::patchify(images, 8, 8), weight_of_eighths().view({24, 192}), bias);
    // Whole numbers and eighths of them are summed without rounding; the rest is fp32's own, of the scales.
    EXPECT_LT(distance(embedded(images, weight_of_eighths(), bias, true), exact), 1e-6);
  }
}

// Rounded one by one, 64 weights of a channel are off by what their errors add up to, by chance eight times one; handed
// on, by the last one's.
TEST(WholePixels, RoundTheWeightSoThatFlatPicturesLoseLittle) {
  const Tensor weight = Tensor::randn({24, 3, 8, 8}, 3), images = Tensor::empty({1, 3, 8, 8});
  const Tensor nearest = weight.clone();
  for (int64_t i = 0; i < weight.numel(); ++i) {
    const image::PixelScale scale = normalizer().pixel_scales()[i / 64 % 3];
    const float step = scale.step;
    nearest.data<float>()[i] = static_cast<float>(BFloat16(weight.data<float>()[i] * step)) / step;
    if (i < 192) images.data<float>()[i] = scale.step * static_cast<float>(240 - i / 64) + scale.offset;
  }
  const auto product = [&](const Tensor& of) { return ops::linear(images.view({1, 1, 192}), of.view({24, 192}), {}); };
  const Tensor exact = product(weight);
  EXPECT_LT(distance(embedded(images, weight.clone(), Tensor(), true), exact), distance(product(nearest), exact) / 4);
}

// As near as session_test.cpp has it of normalised pixels; what is gained of it is little beside what blocks round.
TEST(WholePixels, AreReadByTheSessionsThatAreTold) {
  for (const std::string name : {"timm_token", "timm_patch_norm_post"}) {
    const auto config = model_of(name).config();
    const Tensor images = pictures(4, config.img_size[0], config.img_size[1]);
    const Tensor exact = Session(model_of(name)).logits(images);
    for (const auto& [precision, limit] : {std::pair{Precision::bf16, 0.01}, std::pair{Precision::int8, 0.06}}) {
      const Tensor plain = Session(model_of(name), {.precision = precision}).logits(images);
      const SessionOptions told{.precision = precision, .pixels = normalizer().pixel_scales()};
      const Tensor whole = Session(model_of(name), told).logits(images);
      EXPECT_LT(distance(whole, exact), limit) << name;
      EXPECT_GT(distance(whole, plain), 0) << name;
    }
  }
}

// fp32 has bits to spare, and a norm before the product reads the pixels as they were.
TEST(WholePixels, ChangeNothingWhereNoBf16ProductReadsThem) {
  for (const auto& [name, precision] :
       {std::pair{"timm_token", Precision::fp32}, std::pair{"timm_patch_norm_pre", Precision::bf16}}) {
    const auto config = model_of(name).config();
    const Tensor images = pictures(4, config.img_size[0], config.img_size[1]);
    const SessionOptions told{.precision = precision, .pixels = normalizer().pixel_scales()};
    EXPECT_TRUE(testing::close(Session(model_of(name), told).logits(images),
                               Session(model_of(name), {.precision = precision}).logits(images), 0));
  }
}

TEST(WholePixels, ScalesThatFitNoImageAreErrors) {
  const auto told = [](std::vector<image::PixelScale> scales) {
    return SessionOptions{.precision = Precision::bf16, .pixels = std::move(scales)};
  };
  EXPECT_THROW(Session(model_of("timm_token"), told({{0, 1}, {0, 1}})), Error);
  EXPECT_THROW(Session(model_of("timm_token"), told({{0, 0}})), Error);
  EXPECT_NO_THROW(Session(model_of("timm_token"), told({{0, 1}})));
}

TEST(WholePixels, PatchesAreScaledByChannel) {
  const float image[] = {1, 2, 3, 4, 5, 6, 7, 8}, factor[] = {2, -1}, offset[] = {0.5f, 10};  // [1, 2, 2, 2]
  float rows[8];
  kernels::patchify(image, 1, 2, 2, 2, 2, 1, rows, factor, offset);
  const float wanted[] = {2.5f, 6.5f, 5, 3, 4.5f, 8.5f, 4, 2};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(rows[i], wanted[i]) << i;
}

}  // namespace
}  // namespace vitrail::infer
