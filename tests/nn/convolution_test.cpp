// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/convolution.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/nn/traced_layers.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/layout.h"

namespace vitrail::nn {
namespace {

using kernels::Activation;
using testing::error_of;

double at(const Tensor& t, std::array<int64_t, 4> i) {
  const Shape& steps = t.strides();
  return t.data<double>()[i[0] * steps[0] + i[1] * steps[1] + i[2] * steps[2] + i[3] * steps[3]];
}

// Σ over the taps and channels, as torch.nn.Conv2d's documentation states it, with channels last.
Tensor convolved(const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t stride, int64_t padding) {
  const int64_t kernel = weight.size(2), rows = (x.size(1) + 2 * padding - kernel) / stride + 1,
                columns = (x.size(2) + 2 * padding - kernel) / stride + 1, out = weight.size(0);
  const Tensor y = Tensor::zeros({x.size(0), rows, columns, out}, DType::f64);
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t o = i % out, column = i / out % columns, row = i / out / columns % rows, b = i / out / columns / rows;
    double& sum = y.data<double>()[i];
    sum = bias.defined() ? bias.data<double>()[o] : 0;
    for (int64_t c = 0; c < x.size(3); ++c) {
      for (int64_t tap = 0; tap < kernel * kernel; ++tap) {
        const int64_t v = row * stride + tap / kernel - padding, u = column * stride + tap % kernel - padding;
        if (v < 0 || u < 0 || v >= x.size(1) || u >= x.size(2)) continue;
        sum += at(x, {b, v, u, c}) * at(weight, {o, c, tap / kernel, tap % kernel});
      }
    }
  }
  return y;
}

TEST(Conv2d, IsTheSumOverTheTapsOfItsKernel) {
  for (const int64_t kernel : {1, 2, 3, 4}) {
    for (const bool bias : {true, false}) {
      RandomParams params(1, DType::f64);
      const Conv2d layer({.in_chans = 3, .out_chans = 5, .kernel = kernel, .bias = bias}, ParamSource(params));
      const Tensor x = Tensor::randn({2, 8, 4, 3}, 2, DType::f64);
      const Tensor want = convolved(x, layer.parameter("weight"), bias ? layer.parameter("bias") : Tensor(),
                                    kernel == 3 ? 1 : kernel, kernel == 3 ? 1 : 0);
      EXPECT_TRUE(testing::close(layer.forward(x), want, 1e-13)) << kernel;
    }
  }
}

TEST(Conv2d, OfAnyKernelTakesAPadding) {
  RandomParams params(1, DType::f64);
  const Conv2d layer({.in_chans = 3, .out_chans = 5, .kernel = 7, .stride = 4, .padding = 3}, ParamSource(params));
  const Tensor x = Tensor::randn({2, 8, 12, 3}, 2, DType::f64);
  const Tensor want = convolved(x, layer.parameter("weight"), layer.parameter("bias"), 4, 3);
  EXPECT_TRUE(testing::close(layer.forward(x), want, 1e-13));
  EXPECT_EQ(layer.to_string(), "Conv2d(3, 5, kernel_size=(7, 7), stride=(4, 4), padding=(3, 3))");
}

TEST(Conv2d, RefusesOtherMaps) {
  RandomParams params;
  const Conv2d layer({.in_chans = 3, .out_chans = 5, .kernel = 2}, ParamSource(params, "neck.0"));
  EXPECT_ERROR(testing::error_of([&] { layer.forward(Tensor::zeros({1, 4, 4, 2})); }), "neck.0", "[1, 4, 4, 2]");
  EXPECT_THROW(layer.forward(Tensor::zeros({4, 4, 3})), Error);
  for (const Shape& shape : {Shape{1, 5, 4, 3}, Shape{1, 4, 5, 3}}) {
    EXPECT_ERROR(testing::error_of([&] { layer.forward(Tensor::zeros(shape)); }), "Conv2d", shape.to_string());
  }
}

// Each cell of x adds its channels, times the kernel, to kernel² cells of the result, which do not overlap.
TEST(ConvTranspose2d, SpreadsEachCellOverItsKernel) {
  for (const int64_t kernel : {1, 2, 3}) {
    RandomParams params(1, DType::f64);
    const ConvTranspose2d layer({.in_chans = 4, .out_chans = 3, .kernel = kernel}, ParamSource(params));
    const Tensor weight = layer.parameter("weight"), bias = layer.parameter("bias");
    ASSERT_EQ(weight.shape(), (Shape{4, 3, kernel, kernel}));
    const Tensor x = Tensor::randn({2, 3, 5, 4}, 2, DType::f64), got = layer.forward(x);
    ASSERT_EQ(got.shape(), (Shape{2, 3 * kernel, 5 * kernel, 3}));
    for (int64_t i = 0; i < got.numel(); ++i) {
      const int64_t o = i % 3, column = i / 3 % (5 * kernel), row = i / 3 / (5 * kernel) % (3 * kernel),
                    b = i / 3 / (5 * kernel) / (3 * kernel);
      double want = bias.data<double>()[o];
      for (int64_t c = 0; c < 4; ++c)
        want += at(x, {b, row / kernel, column / kernel, c}) * at(weight, {c, o, row % kernel, column % kernel});
      ASSERT_NEAR(got.data<double>()[i], want, 1e-13) << kernel << ", " << i;
    }
    EXPECT_THROW(layer.forward(Tensor::zeros({2, 3, 5, 3}, DType::f64)), Error);
  }
}

// Provides a weight and a bias.
class GivenParams : public ParamProvider {
 public:
  GivenParams(Tensor weight, Tensor bias) : weight_(std::move(weight)), bias_(std::move(bias)) {}
  Tensor get(const std::string& path, const Shape&, const Initializer&) override {
    return path == "weight" ? weight_ : bias_;
  }
  bool has(const std::string&) const override { return true; }
  void finish() override {}

 private:
  Tensor weight_, bias_;
};

// A central difference is right to about 1e-10: tests/autograd/gradients_test.cpp.  Odd sides leave a border.
TEST(Convolution, HasTheGradientsOfCentralDifferences) {
  const auto worst = [](auto&& layer_of, const Shape& weight) {
    return autograd::check_gradients(
               [&](const std::vector<Tensor>& in) {
                 GivenParams params(in[1], in[2]);
                 return layer_of(ParamSource(params)).forward(in[0], Activation::relu);
               },
               {Tensor::randn({2, 5, 3, 2}, 1, DType::f64), Tensor::randn(weight, 2, DType::f64),
                Tensor::randn({3}, 3, DType::f64)})
        .worst;
  };
  for (const int64_t stride : {1, 2}) {
    const Conv2dConfig config{.in_chans = 2, .out_chans = 3, .kernel = 3, .stride = stride};
    EXPECT_LT(worst([&](const ParamSource& params) { return Conv2d(config, params); }, {3, 2, 3, 3}), 1e-8) << stride;
  }
  for (const int64_t kernel : {2, 4}) {
    const Conv2dConfig config{.in_chans = 2, .out_chans = 3, .kernel = kernel};
    EXPECT_LT(worst([&](const ParamSource& params) { return ConvTranspose2d(config, params); }, {2, 3, kernel, kernel}),
              1e-8)
        << kernel;
  }
}

TEST(Convolution, PrintsAsPyTorch) {
  RandomParams params;
  const ParamSource source(params);
  EXPECT_EQ(Conv2d({.in_chans = 3, .out_chans = 5}, source).to_string(),
            "Conv2d(3, 5, kernel_size=(1, 1), stride=(1, 1))");
  EXPECT_EQ(Conv2d({.in_chans = 3, .out_chans = 5, .kernel = 3, .bias = false}, source).to_string(),
            "Conv2d(3, 5, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)");
  EXPECT_EQ(Conv2d({.in_chans = 1, .out_chans = 4, .kernel = 2}, source).to_string(),
            "Conv2d(1, 4, kernel_size=(2, 2), stride=(2, 2))");
  EXPECT_EQ(ConvTranspose2d({.in_chans = 6, .out_chans = 4, .kernel = 2}, source).to_string(),
            "ConvTranspose2d(6, 4, kernel_size=(2, 2), stride=(2, 2))");
}

// A stride keeps every second result in each direction.
TEST_F(Layers, ConvolutionsTakeAStrideAndAnActivation) {
  const Conv2dConfig config{.in_chans = 3, .out_chans = 2, .kernel = 3};
  Conv2dConfig strided = config;
  strided.stride = 2;
  const Conv2d all(config, source("conv")), layer(strided, source("conv"));
  const Tensor x = Tensor::randn({1, 5, 4, 3}, 1), every = all.forward(x), got = layer.forward(x);
  ASSERT_EQ(got.shape(), (Shape{1, 3, 2, 2}));
  for (int64_t i = 0; i < got.numel(); ++i) {
    const int64_t o = i % 2, column = i / 2 % 2, row = i / 4;
    EXPECT_NEAR(got.data<float>()[i], every.data<float>()[((2 * row) * 4 + 2 * column) * 2 + o], 1e-5) << i;
  }
  EXPECT_EQ(layer.to_string(), "Conv2d(3, 2, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))");
  const Tensor want = ops::activation(got, Activation::relu);
  EXPECT_TRUE(testing::close(layer.forward(x, Activation::relu), want, 1e-6));
  Tensor out;
  const Values values = traced_by([&] { out = layer.forward(x, Activation::relu); });
  EXPECT_TRUE(testing::close(out, want, 1e-6));
  EXPECT_TRUE(testing::close(values.at("conv"), got, 1e-6)) << "before the activation";
  strided.stride = 0;
  EXPECT_ERROR(error_of([&] { Conv2d(strided, source("conv")); }), "Conv2d", "0");
}

// A map whose neighbourhoods are computed in parts has the same values as a small part of it.
TEST_F(Layers, ConvolutionsOfLargeMapsAreComputedInParts) {
  const Conv2d layer({.in_chans = 3, .out_chans = 2, .kernel = 3}, source("conv"));
  const int64_t height = 1300, width = 1000;  // 27 · 1.3 million values
  const Tensor x = Tensor::randn({1, height, width, 3}, 1), got = layer.forward(x, Activation::relu);
  ASSERT_EQ(got.shape(), (Shape{1, height, width, 2}));
  for (const int64_t first : {int64_t{0}, int64_t{1200}, height - 100}) {
    const Tensor part = layer.forward(ops::contiguous(x.narrow(1, first, 100)), Activation::relu);
    const int64_t inner = first == 0 ? 0 : 1, count = 100 - (first == 0 || first + 100 == height ? 1 : 2);
    EXPECT_TRUE(testing::close(got.narrow(1, first + inner, count), part.narrow(1, inner, count), 1e-5)) << first;
  }
}

TEST_F(Layers, TransposedConvolutionsActivateTheirResult) {
  const ConvTranspose2d layer({.in_chans = 3, .out_chans = 2, .kernel = 2}, source("up"));
  const Tensor x = Tensor::randn({1, 2, 3, 3}, 1), plain = layer.forward(x);
  const Tensor want = ops::activation(plain, Activation::relu);
  EXPECT_TRUE(testing::close(layer.forward(x, Activation::relu), want, 1e-6));
  Tensor out;
  const Values values = traced_by([&] { out = layer.forward(x, Activation::relu); });
  EXPECT_TRUE(testing::close(out, want, 1e-6));
  EXPECT_TRUE(testing::close(values.at("up"), plain, 1e-6)) << "before the activation";
  EXPECT_ERROR(error_of([&] { layer.forward(Tensor::zeros({1, 2, 3, 2})); }), "up", "[1, 2, 3, 2]");
  const Conv2d conv({.in_chans = 3, .out_chans = 2}, source());
  EXPECT_ERROR(error_of([&] { conv.forward(Tensor::zeros({2, 3, 3})); }), "Conv2d", "[2, 3, 3]");
  EXPECT_TRUE(traced_by([&] { Conv2d({.in_chans = 3, .out_chans = 2}, source("neck")).forward(x); }).contains("neck"));
}

}  // namespace
}  // namespace vitrail::nn
