// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/folded_batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/support/golden.h"
#include "vitrail/nn/convolution.h"

namespace vitrail::nn {
namespace {

// Tensors by their paths; a meta tensor for a missing one, as of a file.
struct NamedParams : ParamProvider {
  std::map<std::string, Tensor> tensors;

  Tensor get(const std::string& path, const Shape& shape, const Initializer& /*init*/) override {
    return has(path) ? tensors.at(path) : Tensor::empty(shape, DType::f32, Device::meta);
  }
  bool has(const std::string& path) const override { return tensors.contains(path); }
  void finish() override {}
};

NamedParams random_params() {
  NamedParams params;
  params.tensors = {{"conv.weight", Tensor::randn({4, 3, 3, 3}, 1)},
                    {"conv.bias", Tensor::randn({4}, 2)},
                    {"bn.weight", Tensor::randn({4}, 3)},
                    {"bn.bias", Tensor::randn({4}, 4)},
                    {"bn.running_mean", Tensor::randn({4}, 5)},
                    {"bn.running_var", Tensor::full({4}, 0.3)}};
  return params;
}

TEST(FoldedBatchNorm, IsTheConvolutionAndTheNormalisation) {
  NamedParams params = random_params();
  const ParamSource source(params);
  for (const bool bias : {true, false}) {
    const Conv2d plain({.in_chans = 3, .out_chans = 4, .kernel = 3, .bias = bias}, source.child("conv"));
    FoldedBatchNorm provider(source.child("conv"), source.child("bn"), bias, 0.1);
    const Conv2d folded({.in_chans = 3, .out_chans = 4, .kernel = 3}, ParamSource(provider, "conv"));
    const Tensor x = Tensor::randn({1, 5, 4, 3}, 6), want = plain.forward(x);
    const auto value = [&](const char* name, int64_t i) { return params.tensors[name].data<float>()[i % 4]; };
    for (int64_t i = 0; i < want.numel(); ++i) {
      want.data<float>()[i] = (want.data<float>()[i] - value("bn.running_mean", i)) /
                                  std::sqrt(value("bn.running_var", i) + 0.1F) * value("bn.weight", i) +
                              value("bn.bias", i);
    }
    EXPECT_TRUE(testing::close(folded.forward(x), want, 1e-5)) << bias;
  }
}

TEST(FoldedBatchNorm, IsATransposedConvolutionAndTheNormalisation) {
  NamedParams params = random_params();
  params.tensors["conv.weight"] = Tensor::randn({3, 4, 2, 2}, 7);
  const ParamSource source(params);
  const ConvTranspose2d plain({.in_chans = 3, .out_chans = 4, .kernel = 2}, source.child("conv"));
  FoldedBatchNorm provider(source.child("conv"), source.child("bn"), true, 0.1, 1);
  const ConvTranspose2d folded({.in_chans = 3, .out_chans = 4, .kernel = 2}, ParamSource(provider, "conv"));
  const Tensor x = Tensor::randn({1, 2, 3, 3}, 8), want = plain.forward(x);
  const auto value = [&](const char* name, int64_t i) { return params.tensors[name].data<float>()[i % 4]; };
  for (int64_t i = 0; i < want.numel(); ++i) {
    want.data<float>()[i] = (want.data<float>()[i] - value("bn.running_mean", i)) /
                                std::sqrt(value("bn.running_var", i) + 0.1F) * value("bn.weight", i) +
                            value("bn.bias", i);
  }
  EXPECT_TRUE(testing::close(folded.forward(x), want, 1e-5));
}

TEST(FoldedBatchNorm, LeavesMissingTensorsToTheProvider) {
  for (const char* missing :
       {"conv.weight", "conv.bias", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}) {
    NamedParams params = random_params();
    params.tensors.erase(missing);
    const ParamSource source(params);
    FoldedBatchNorm provider(source.child("conv"), source.child("bn"), true);
    EXPECT_NO_THROW(Conv2d({.in_chans = 3, .out_chans = 4, .kernel = 3}, ParamSource(provider, "conv"))) << missing;
  }
}

}  // namespace
}  // namespace vitrail::nn
