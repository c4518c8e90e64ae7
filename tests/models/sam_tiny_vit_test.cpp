// SPDX-License-Identifier: Apache-2.0
// The parts of MobileSAM's image encoder against their formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "tests/models/small_sam.h"
#include "vitrail/models/sam/tiny_vit.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"

namespace vitrail::models {
namespace {

using kernels::Activation;

// A batch norm becomes part of the convolution in front of it.
TEST(SamParts, ABatchNormIsFoldedIntoItsConvolution) {
  const Tensor x = Tensor::randn({1, 4, 5, 3}, 1);
  for (const bool depthwise : {false, true}) {
    for (const int64_t kernel : {1, 3}) {
      if (depthwise && kernel == 1) continue;
      const int64_t stride = kernel == 3 && !depthwise ? 2 : 1, out = depthwise ? 3 : 2;
      SmallParams params(1e-3);
      const SamConvNorm folded({3, out, kernel, stride, depthwise}, params.source());
      const Tensor& weight = params["c.weight"];
      EXPECT_EQ(weight.shape(), (Shape{out, depthwise ? 1 : 3, kernel, kernel}));
      const Tensor plain = depthwise
                               ? ops::depthwise_conv_3x3(x, weight.view({3, 3, 3}), Tensor::zeros({3}), 1)
                               : ops::linear(kernel == 1 ? x : ops::unfold_3x3(x, stride), weight.view({out, -1}), {});
      const Tensor want = Tensor::zeros(plain.shape());
      const Tensor given = plain.contiguous();
      for (int64_t i = 0; i < given.numel(); ++i) {
        const auto at = [&](const char* name) { return double{params[name].data<float>()[i % out]}; };
        want.data<float>()[i] = static_cast<float>((given.data<float>()[i] - at("bn.running_mean")) * at("bn.weight") /
                                                       std::sqrt(at("bn.running_var") + 1e-5) +
                                                   at("bn.bias"));
      }
      EXPECT_TRUE(near(folded.forward(x), want));
      EXPECT_TRUE(near(folded.forward(x, Activation::relu), ops::activation(want, Activation::relu)));
      EXPECT_EQ(folded.named_parameters().size(), 2u);
      EXPECT_EQ(folded.named_parameters()[0].name, "c.weight");
      EXPECT_EQ(folded.named_parameters()[1].name, "c.bias");
    }
  }
}

// A bias stands for a batch norm that has been folded; a norm in the file is read, whether there is a bias or not.
TEST(SamParts, AConvolutionsBiasStandsForItsNorm) {
  for (const auto& [norm, bias] : {std::pair(true, true), {true, false}, {false, true}, {false, false}}) {
    SmallParams params;
    if (!norm) params.absent.insert("bn.weight");
    if (!bias) params.absent.insert("c.bias");
    const SamConvNorm layer({.in_chans = 3, .out_chans = 2}, params.source());
    EXPECT_EQ(params.tensors.contains("c.bias"), !norm && bias) << norm << bias;
    EXPECT_EQ(params.tensors.contains("bn.running_mean"), norm || !bias) << norm << bias;
    EXPECT_EQ(layer.type(), "Conv2d_BN");
  }
}

// q, k and v of a head are side by side; the bias is that of the distances, and cells behind the edge are 0 before the
// norm.
TEST(SamParts, TinyAttentionHasABiasForEachDistance) {
  SmallParams params(0.5);
  const int64_t dim = 6, heads = 2, width = 3, window = 2;
  const SamTinyAttention attention({.dim = dim, .num_heads = heads, .window = window}, params.source());
  const Tensor x = small_map({1, 2, 3, dim}, 5, 3e-3);
  const Tensor norm = normalised(params, "norm", x, 1e-5);
  const Tensor padded = Tensor::zeros({8, dim});  // two windows, one behind the other, row by row
  for (int64_t cell = 0; cell < 8; ++cell) {
    const int64_t row = cell % 4 / 2, column = cell / 4 * 2 + cell % 2;
    const Tensor from = column < 3 ? norm.select(0, 0).select(0, row).select(0, column) : params["norm.bias"];
    padded.select(0, cell).copy_(from);
  }
  const Tensor qkv = linear(params, "qkv", padded);  // [8, 18]: head, then q, k and v
  const auto value = [&](int64_t cell, int64_t head, int64_t part, int64_t i) {
    return double{qkv.data<float>()[cell * 18 + head * 9 + part * 3 + i]};
  };
  const Tensor attended = Tensor::zeros({8, dim});
  for (int64_t cell = 0; cell < 8; ++cell) {
    for (int64_t head = 0; head < heads; ++head) {
      double total = 0, sums[3] = {0, 0, 0};
      for (int64_t j = cell / 4 * 4; j < cell / 4 * 4 + 4; ++j) {
        const int64_t down = std::abs(cell % 4 / 2 - j % 4 / 2), across = std::abs(cell % 2 - j % 2);
        double score = 0;
        for (int64_t i = 0; i < width; ++i) score += value(cell, head, 0, i) * value(j, head, 1, i);
        score = score / std::sqrt(3.0) + params["attention_biases"].data<float>()[head * 4 + down * 2 + across];
        total += std::exp(score);
        for (int64_t i = 0; i < width; ++i) sums[i] += std::exp(score) * value(j, head, 2, i);
      }
      for (int64_t i = 0; i < width; ++i) {
        attended.data<float>()[cell * dim + head * 3 + i] = static_cast<float>(sums[i] / total);
      }
    }
  }
  const Tensor out = linear(params, "proj", attended);
  const Tensor want = Tensor::empty({1, 2, 3, dim});
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t column = 0; column < 3; ++column) {
      want.select(0, 0).select(0, row).select(0, column).copy_(out.select(0, column / 2 * 4 + row * 2 + column % 2));
    }
  }
  EXPECT_TRUE(near(attention.forward(x), want));
  EXPECT_EQ(attention.type(), "Attention");
}

TEST(SamParts, ATinyBlockHasAConvolutionBetweenAttentionAndMlp) {
  SmallParams params;
  const SamTinyStage stage{.dim = 6, .hidden = 5, .num_heads = 2, .window = 2};
  const SamTinyBlock block(stage, params.source());
  const SamTinyAttention attention(stage, params.source("attn"));
  const SamConvNorm convolution({.in_chans = 6, .out_chans = 6, .kernel = 3, .depthwise = true},
                                params.source("local_conv"));
  const Tensor x = small_map({1, 3, 4, 6}, 2);
  const Tensor local = convolution.forward(ops::add(x, attention.forward(x)));
  const Tensor hidden = linear(params, "mlp.fc1", normalised(params, "mlp.norm", local, 1e-5), Activation::gelu);
  EXPECT_TRUE(near(block.forward(x), ops::add(local, linear(params, "mlp.fc2", hidden))));
}

TEST(SamParts, TinyConvolutionsAreABottleneckOrMergePatches) {
  const Tensor x = Tensor::randn({1, 3, 4, 2}, 2);
  for (const bool residual : {true, false}) {
    SmallParams params(1e-3);
    const int64_t out = residual ? 2 : 5, stride = residual ? 1 : 2;
    const SamTinyConvolutions layers(2, 3, out, stride, residual, params.source());
    const SamConvNorm first({.in_chans = 2, .out_chans = 3}, params.source("conv1"));
    const SamConvNorm second({.in_chans = 3, .out_chans = 3, .kernel = 3, .stride = stride, .depthwise = true},
                             params.source("conv2"));
    const SamConvNorm third({.in_chans = 3, .out_chans = out}, params.source("conv3"));
    const Tensor y = third.forward(second.forward(first.forward(x, Activation::gelu), Activation::gelu));
    EXPECT_TRUE(near(layers.forward(x), residual ? ops::activation(ops::add(x, y), Activation::gelu) : y));
    EXPECT_EQ(layers.type(), residual ? "MBConv" : "PatchMerging");
  }
}

}  // namespace
}  // namespace vitrail::models
