// SPDX-License-Identifier: Apache-2.0
// The parts of Segment Anything against their formulas, with inputs so small that the ε of their norms matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/models/sam/tiny_vit.h"
#include "vitrail/nn/downsampled_attention.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/relative_attention.h"

namespace vitrail::models {
namespace {

using kernels::Activation;
using testing::close;
using testing::error_of;

// Parameters of a size that the test chooses: one tensor for each name, the same for each module that asks for it.
class SmallParams : public ParamProvider {
 public:
  explicit SmallParams(double weights = 0.02, double norms = 1) : weights_(weights), norms_(norms) {}
  Tensor get(const std::string& path, const Shape& shape, const Initializer& /*init*/) override {
    const auto found = tensors.find(path);
    if (found != tensors.end()) {
      EXPECT_EQ(found->second.shape(), shape) << path;
      return found->second;
    }
    Tensor tensor = Tensor::randn(shape, tensors.size() + 1);
    const bool norm = shape.rank() == 1 && path.ends_with("weight"), variance = path.ends_with("running_var");
    float* const values = tensor.data<float>();
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      const double value = values[i];
      values[i] = static_cast<float>(variance ? 1e-5 * (0.5 + std::abs(value))
                                     : norm   ? norms_ * (1 + 0.3 * value)
                                              : weights_ * value);
    }
    return tensors[path] = tensor;
  }
  bool has(const std::string& path) const override { return !absent.contains(path); }
  void finish() override {}
  const Tensor& operator[](const std::string& path) const { return tensors.at(path); }
  ParamSource source(const std::string& path = "") { return ParamSource(*this, path); }

  std::map<std::string, Tensor> tensors;
  std::set<std::string> absent;

 private:
  double weights_, norms_;
};

Tensor small_map(const Shape& shape, uint64_t seed, double scale = 1e-3) {
  return ops::mul(Tensor::randn(shape, seed), Tensor::full({1}, scale));
}

Tensor normalised(const SmallParams& params, const std::string& name, const Tensor& x, double eps) {
  return ops::layer_norm(x, params[name + ".weight"], params[name + ".bias"], eps);
}

Tensor linear(const SmallParams& params, const std::string& name, const Tensor& x,
              Activation activation = Activation::none) {
  const Tensor y = ops::linear(x, params[name + ".weight"], params[name + ".bias"]);
  return activation == Activation::none ? y : ops::activation(y, activation);
}

// Relative to the largest value.
::testing::AssertionResult near(const Tensor& got, const Tensor& want) {
  double largest = 0;
  const Tensor values = want.contiguous();
  for (int64_t i = 0; i < values.numel(); ++i) largest = std::max(largest, std::abs(double{values.data<float>()[i]}));
  return close(got, want, 2e-5 * largest);
}

TEST(RelativePositionTable, IsInterpolatedBetweenTheCentresOfItsRows) {
  const Tensor table = Tensor::from<float>({3, 2}, {0, 10, 1, 30, 4, 20});
  EXPECT_EQ(relative_position_table(table, 2).raw(), table.raw()) << "of that length already";
  EXPECT_TRUE(close(relative_position_table(table, 3),
                    Tensor::from<float>({5, 2}, {0, 10, 0.4, 18, 1, 30, 2.8, 24, 4, 20}), 1e-6));
  EXPECT_TRUE(close(relative_position_table(table, 1), Tensor::from<float>({1, 2}, {1, 30}), 1e-6));
}

TEST(SamParts, TheNeckIsTwoConvolutionsWithNorms) {
  SmallParams params(1e-3);
  const SamNeck neck(3, 4, params.source("neck"));
  const Tensor x = Tensor::randn({1, 2, 3, 3}, 1);
  const Tensor first = ops::linear(x, params["neck.0.weight"].view({4, 3}), {});
  const Tensor second = ops::linear(ops::unfold_3x3(normalised(params, "neck.1", first, 1e-6)),
                                    params["neck.2.weight"].view({4, 36}), {});
  EXPECT_TRUE(near(neck.forward(x), normalised(params, "neck.3", second, 1e-6)));
  EXPECT_EQ(neck.to_string(),
            "Sequential(\n"
            "  (0): Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1), bias=False)\n"
            "  (1): LayerNorm((4,), eps=1e-06, elementwise_affine=True)\n"
            "  (2): Conv2d(4, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)\n"
            "  (3): LayerNorm((4,), eps=1e-06, elementwise_affine=True)\n"
            ")");
}

SamEncoderConfig small_encoder() {
  return {.grid = 5,
          .patch_size = 2,
          .in_chans = 3,
          .dim = 6,
          .num_heads = 2,
          .head_dim = 3,
          .mlp_hidden = 7,
          .out_chans = 4,
          .norm_eps = 1e-4,
          .blocks = {{.window = 2, .table_length = 3}, {.table_length = 9}}};
}

// Both norms have the configured ε.
TEST(SamParts, ABlocksNormsHaveItsEpsilon) {
  SmallParams params;
  const SamEncoderConfig config = small_encoder();
  for (const SamBlockConfig& block_config : config.blocks) {
    params.tensors.clear();
    const SamBlock block(config, block_config, params.source());
    const SamAttention attention(config, block_config, params.source("attn"));
    const Tensor x = small_map({2, 5, 5, 6}, 3, 1e-2);
    const Tensor attended = ops::add(x, attention.forward(normalised(params, "norm1", x, 1e-4)));
    const Tensor hidden = linear(params, "mlp.lin1", normalised(params, "norm2", attended, 1e-4), Activation::gelu);
    EXPECT_TRUE(near(block.forward(x), ops::add(attended, linear(params, "mlp.lin2", hidden))));
  }
}

// The scale is that of the heads' width, and the tables have their axes.
TEST(SamParts, AttentionOfTheWholeGridHasTablesOfItsRowsAndColumns) {
  SmallParams params(0.7);
  const SamEncoderConfig config = small_encoder();
  const SamAttention attention(config, config.blocks[1], params.source());
  const Tensor x = Tensor::randn({1, 5, 5, 6}, 3);
  const Tensor qkv = linear(params, "qkv", x).view({1, 25, 18});
  const Tensor attended =
      ops::relative_self_attention(qkv, 2, 1 / std::sqrt(3.0), params["rel_pos_h"], params["rel_pos_w"], {5, 5});
  EXPECT_TRUE(near(attention.forward(x), linear(params, "proj", attended.view({1, 5, 5, 6}))));
}

TEST(SamParts, UpscalingHasANormAndGeluBetweenItsConvolutions) {
  SmallParams params(1e-3);
  const SamUpscaling upscaling(5, 4, 3, params.source());
  const auto transposed = [&](const std::string& name, const Tensor& x, int64_t in, int64_t out) {
    const Tensor weight = params[name + ".weight"].view({in, out * 4}).transpose(0, 1).contiguous();
    const Tensor bias = params[name + ".bias"].unsqueeze(1).expand({out, 4}).contiguous().view({out * 4});
    return ops::pixel_shuffle(ops::linear(x, weight, bias), 2);
  };
  const Tensor x = Tensor::randn({1, 2, 3, 5}, 1);
  const Tensor hidden = ops::activation(normalised(params, "1", transposed("0", x, 5, 4), 1e-6), Activation::gelu);
  const Tensor want = transposed("3", hidden, 4, 3);
  EXPECT_TRUE(near(upscaling.forward(x), want));
  EXPECT_TRUE(near(upscaling.forward(x, Activation::relu), ops::activation(want, Activation::relu)));
  EXPECT_EQ(upscaling.type(), "Sequential");
}

TEST(SamParts, TheMlpHasThreeLayersWithReluBetweenThem) {
  SmallParams params(0.8);
  const SamMlp mlp(3, 5, 2, params.source("head"));
  const Tensor x = Tensor::randn({4, 3}, 1);
  const Tensor hidden =
      linear(params, "head.layers.1", linear(params, "head.layers.0", x, Activation::relu), Activation::relu);
  EXPECT_TRUE(near(mlp.forward(x), linear(params, "head.layers.2", hidden)));
  EXPECT_EQ(mlp.to_string(),
            "MLP(\n"
            "  (layers): ModuleList(\n"
            "    (0): Linear(in_features=3, out_features=5, bias=True)\n"
            "    (1): Linear(in_features=5, out_features=5, bias=True)\n"
            "    (2): Linear(in_features=5, out_features=2, bias=True)\n"
            "  )\n"
            ")");
}

SamConfig small_sam() {
  SamConfig config;
  config.encoder = small_encoder();
  config.decoder = {.dim = 8,
                    .num_heads = 2,
                    .depth = 2,
                    .cross_dim = 4,
                    .mlp_hidden = 6,
                    .mask_tokens = 3,
                    .upscale_dims = {5, 3},
                    .iou_hidden = 7,
                    .mask_chans = {2, 4}};
  config.encoder.out_chans = 8;
  return config;
}

TEST(SamParts, AMaskPromptIsReducedByTwoStridedConvolutions) {
  SmallParams params(1e-2);
  const SamPromptEncoder encoder(small_sam(), params.source());
  const nn::Conv2d conv1({.in_chans = 1, .out_chans = 2, .kernel = 2}, params.source("mask_downscaling.0"));
  const nn::Conv2d conv2({.in_chans = 2, .out_chans = 4, .kernel = 2}, params.source("mask_downscaling.3"));
  const nn::Conv2d conv3({.in_chans = 4, .out_chans = 8}, params.source("mask_downscaling.6"));
  const Tensor logits = small_map({1, 1, 20, 20}, 4, 0.1);
  Tensor x = normalised(params, "mask_downscaling.1", conv1.forward(logits.view({1, 20, 20, 1})), 1e-6);
  x = normalised(params, "mask_downscaling.4", conv2.forward(ops::activation(x, Activation::gelu)), 1e-6);
  EXPECT_TRUE(near(encoder.mask(logits), conv3.forward(ops::activation(x, Activation::gelu))));
  EXPECT_EQ(encoder.no_mask().shape(), (Shape{1, 1, 1, 8}));
  EXPECT_TRUE(close(encoder.no_mask().view({1, 8}), params["no_mask_embed.weight"], 0));
  for (const Shape& shape : {Shape{1, 20, 20}, {1, 2, 20, 20}, {1, 1, 19, 20}, {1, 1, 20, 21}}) {
    EXPECT_EQ(error_of([&] { encoder.mask(Tensor::zeros(shape)); }),
              "prompt encoder: expected mask logits [B, 1, 20, 20], got " + shape.to_string());
  }
}

// Cells are at their centres, x across and y down.
TEST(SamParts, GridPositionsAreThoseOfTheCellsCentres) {
  SmallParams params(1);
  const SamPromptEncoder encoder(small_sam(), params.source());
  const Tensor positions = encoder.grid_positions();
  ASSERT_EQ(positions.shape(), (Shape{1, 5, 5, 8}));
  const float* const matrix = params["pe_layer.positional_encoding_gaussian_matrix"].data<float>();
  for (const auto& [y, x] : {std::pair<int64_t, int64_t>{0, 0}, {1, 4}, {4, 2}}) {
    const double across = 2 * (static_cast<double>(x) + 0.5) / 5 - 1, down = 2 * (static_cast<double>(y) + 0.5) / 5 - 1;
    for (int64_t i = 0; i < 4; ++i) {
      const double phase = 2 * std::numbers::pi * (across * matrix[i] + down * matrix[4 + i]);
      const float* const got = positions.data<float>() + (y * 5 + x) * 8;
      EXPECT_NEAR(got[i], std::sin(phase), 1e-5);
      EXPECT_NEAR(got[4 + i], std::cos(phase), 1e-5);
    }
  }
}

TEST(SamParts, PointsNeedALabelEach) {
  SmallParams params;
  const SamPromptEncoder encoder(small_sam(), params.source());
  const auto error_with = [&](const Shape& shape, size_t labels) {
    return error_of([&] { encoder.points(Tensor::zeros(shape), std::vector<SamPoint>(labels, SamPoint::inside)); });
  };
  EXPECT_EQ(error_with({2, 2}, 2), "prompt encoder: expected points [B, N, 2] for 2 labels, got [2, 2]");
  EXPECT_EQ(error_with({1, 2, 3}, 2), "prompt encoder: expected points [B, N, 2] for 2 labels, got [1, 2, 3]");
  EXPECT_EQ(error_with({2, 3, 2}, 5), "prompt encoder: expected points [B, N, 2] for 5 labels, got [2, 3, 2]");
  // Points of several prompts are one after another.
  const Tensor at = Tensor::from<float>({2, 1, 2}, {1, 2, 3, 4});
  const Tensor both = encoder.points(at, {SamPoint::outside, SamPoint::top_left});
  EXPECT_TRUE(close(both.narrow(0, 1, 1), encoder.points(at.narrow(0, 1, 1), {SamPoint::top_left}), 0));
  EXPECT_TRUE(close(both.narrow(0, 0, 1), encoder.points(at.narrow(0, 0, 1), {SamPoint::outside}), 0));
}

struct TwoWay {
  Tensor tokens, image;
};

// A block of Segment Anything's paper, figure 14.
TwoWay two_way_block(SmallParams& params, const std::string& path, bool first, const TwoWay& in, const TwoWay& at) {
  const auto attention = [&](const std::string& name, int64_t rate) {
    return nn::DownsampledAttention({.embedding_dim = 8, .num_heads = 2, .downsample_rate = rate},
                                    params.source(path + name));
  };
  const auto self = attention("self_attn", 1), to_image = attention("cross_attn_token_to_image", 2),
             to_token = attention("cross_attn_image_to_token", 2);
  const Tensor with_positions = ops::add(in.tokens, at.tokens), image = ops::add(in.image, at.image);
  Tensor tokens = first ? self.forward(in.tokens, in.tokens, in.tokens)
                        : ops::add(in.tokens, self.forward(with_positions, with_positions, in.tokens));
  tokens = normalised(params, path + "norm1", tokens, 1e-5);
  tokens = ops::add(tokens, to_image.forward(ops::add(tokens, at.tokens), image, in.image));
  tokens = normalised(params, path + "norm2", tokens, 1e-5);
  const Tensor hidden = linear(params, path + "mlp.lin1", tokens, Activation::relu);
  tokens = normalised(params, path + "norm3", ops::add(tokens, linear(params, path + "mlp.lin2", hidden)), 1e-5);
  const Tensor seen = to_token.forward(image, ops::add(tokens, at.tokens), tokens);
  return {tokens, normalised(params, path + "norm4", ops::add(in.image, seen), 1e-5)};
}

TEST(SamParts, ABlockGoesBothWays) {
  const SamDecoderConfig config = small_sam().decoder;
  for (const bool first : {true, false}) {
    SmallParams params(0.02, 0.01);
    const SamTwoWayBlock block(config, first, params.source());
    const TwoWay in{small_map({2, 3, 8}, 1, 0.01), small_map({2, 6, 8}, 2, 0.01)};
    const TwoWay at{small_map({2, 3, 8}, 3, 0.02), small_map({1, 6, 8}, 4, 0.02)};
    const TwoWay want = two_way_block(params, "", first, in, at);
    const SamStreams got = block.forward({in.tokens, in.image}, {at.tokens, at.image});
    EXPECT_TRUE(near(got.tokens, want.tokens)) << first;
    EXPECT_TRUE(near(got.image, want.image)) << first;
    EXPECT_EQ(block.type(), "TwoWayAttentionBlock");
  }
}

TEST(SamParts, TheTransformerEndsWithAttentionToTheImage) {
  const SamDecoderConfig config = small_sam().decoder;
  SmallParams params(0.02, 0.01);
  const SamTwoWayTransformer transformer(config, params.source());
  const Tensor tokens = small_map({2, 3, 8}, 1, 0.01), image = small_map({1, 6, 8}, 2, 0.01);
  const Tensor positions = small_map({1, 6, 8}, 4, 0.02);
  const TwoWay at{tokens, positions};
  TwoWay want = two_way_block(params, "layers.0.", true, {tokens, image.expand({2, 6, 8}).contiguous()}, at);
  want = two_way_block(params, "layers.1.", false, want, at);
  const nn::DownsampledAttention last({.embedding_dim = 8, .num_heads = 2, .downsample_rate = 2},
                                      params.source("final_attn_token_to_image"));
  const Tensor seen = last.forward(ops::add(want.tokens, tokens), ops::add(want.image, positions), want.image);
  want.tokens = normalised(params, "norm_final_attn", ops::add(want.tokens, seen), 1e-5);
  const SamStreams got = transformer.forward(tokens, image, positions);
  EXPECT_TRUE(near(got.tokens, want.tokens));
  EXPECT_TRUE(near(got.image, want.image));
  EXPECT_EQ(transformer.type(), "TwoWayTransformer");
}

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

SamEncoderConfig tiny_encoder() {
  return {.grid = 2,
          .in_chans = 3,
          .out_chans = 4,
          .stem = 2,
          .stages = {{.dim = 3, .depth = 1, .hidden = 5, .out_dim = 4, .stride = 2},
                     {.dim = 4, .depth = 2, .hidden = 6, .num_heads = 2, .window = 2, .out_dim = 6, .stride = 1},
                     {.dim = 6, .depth = 1, .hidden = 7, .num_heads = 3, .window = 2}}};
}

TEST(SamParts, EncodersNameTheirOuterLayers) {
  SmallParams params;
  const SamImageEncoder plain(small_encoder(), params.source("plain"));
  EXPECT_EQ(plain.outer_layers(), (std::vector<std::string>{"patch_embed.proj", "neck.0", "neck.2"}));
  const SamTinyEncoder tiny(tiny_encoder(), params.source("tiny"));
  EXPECT_EQ(tiny.outer_layers(),
            (std::vector<std::string>{"patch_embed.seq.0.c", "patch_embed.seq.2.c", "neck.0", "neck.2"}));
}

// HQ-SAM reads the first block of the whole grid, or the second stage.
TEST(SamParts, TheIntermediateOutputIsThatOfAnInnerBlock) {
  SmallParams params(0.3);
  SamEncoderConfig config = small_encoder();
  config.blocks = {{.window = 2, .table_length = 3}, {.table_length = 9}, {.table_length = 9}};
  const SamImageEncoder plain(config, params.source("plain"));
  const Tensor images = Tensor::randn({1, 3, 10, 10}, 1);
  const SamTrunk all = plain.trunk_outputs(images);
  SamEncoderConfig shorter = config;
  shorter.blocks.pop_back();
  const SamImageEncoder two(shorter, params.source("plain"));
  EXPECT_TRUE(close(all.intermediate, two.trunk_outputs(images).output, 0));
  EXPECT_FALSE(close(all.output, all.intermediate, 1e-3));
  shorter.blocks.pop_back();
  EXPECT_FALSE(SamImageEncoder(shorter, params.source("plain")).trunk_outputs(images).intermediate.defined());
  const SamTinyEncoder tiny(tiny_encoder(), params.source("tiny"));
  const SamTrunk trunk = tiny.trunk_outputs(Tensor::randn({2, 3, 32, 32}, 2));
  EXPECT_EQ(trunk.intermediate.shape(), (Shape{2, 4, 4, 6}));
  EXPECT_EQ(trunk.output.shape(), (Shape{2, 4, 4, 6}));
  EXPECT_FALSE(close(trunk.output, trunk.intermediate, 1e-6));
}

std::vector<std::string> types_of(const nn::Module& module) {
  std::vector<std::string> types;
  for (const auto& [name, child] : module.named_modules()) types.push_back(name + " " + child->type());
  return types;
}

TEST(SamParts, ModulesHaveTheNamesOfTheirCode) {
  SmallParams params;
  SamConfig config = small_sam();
  config.encoder.blocks.pop_back();
  config.decoder.depth = 1;
  const std::vector<std::string> types = types_of(Sam(config, params.source()));
  const auto has = [&](const std::string& text) { return std::ranges::find(types, text) != types.end(); };
  for (const char* text :
       {" Sam", "image_encoder ImageEncoderViT", "image_encoder.patch_embed PatchEmbed", "image_encoder.blocks.0 Block",
        "image_encoder.blocks.0.attn Attention", "image_encoder.blocks.0.mlp.lin1 Linear",
        "image_encoder.neck.3 LayerNorm", "prompt_encoder PromptEncoder", "prompt_encoder.mask_downscaling.6 Conv2d",
        "mask_decoder MaskDecoder", "mask_decoder.transformer.layers.0 TwoWayAttentionBlock",
        "mask_decoder.transformer.norm_final_attn LayerNorm", "mask_decoder.output_upscaling.3 ConvTranspose2d",
        "mask_decoder.output_hypernetworks_mlps.2 MLP", "mask_decoder.iou_prediction_head.layers.2 Linear"}) {
    EXPECT_TRUE(has(text)) << text;
  }
  config.encoder = tiny_encoder();
  config.encoder.out_chans = 8;
  config.decoder.high_quality = true;
  SmallParams other;
  const Sam tiny(config, other.source());
  const std::vector<std::string> tiny_types = types_of(tiny);
  for (const char* text :
       {"image_encoder TinyViT", "image_encoder.layers.0 BasicLayer", "image_encoder.layers.0.blocks.0 MBConv",
        "image_encoder.layers.1.blocks.1 TinyViTBlock", "image_encoder.layers.1.downsample PatchMerging",
        "image_encoder.layers.2.blocks.0.attn Attention", "mask_decoder.hf_mlp MLP",
        "mask_decoder.compress_vit_feat Sequential", "mask_decoder.embedding_maskfeature.3 Conv2d"}) {
    EXPECT_NE(std::ranges::find(tiny_types, text), tiny_types.end()) << text;
  }
  ASSERT_NE(tiny.hq_head(), nullptr);
  EXPECT_EQ(tiny.hq_head()->type(), "HighQualityHead");
  EXPECT_EQ(tiny.hq_head()->intermediate_width(), 6);
}

// The order of PyTorch, in which optimisers number parameters.
TEST(SamParts, ParametersAreInTheirOrder) {
  SmallParams params;
  SamConfig config = small_sam();
  const Sam sam(config, params.source());
  std::vector<std::string> names;
  for (const nn::NamedTensor& p : sam.named_parameters()) names.push_back(p.name);
  const auto place = [&](const std::string& name) {
    const auto found = std::ranges::find(names, name);
    EXPECT_NE(found, names.end()) << name;
    return found - names.begin();
  };
  const std::vector<std::string> ordered{"image_encoder.pos_embed",
                                         "image_encoder.patch_embed.proj.weight",
                                         "image_encoder.blocks.0.norm1.weight",
                                         "image_encoder.blocks.0.attn.rel_pos_h",
                                         "image_encoder.blocks.0.attn.rel_pos_w",
                                         "image_encoder.blocks.0.attn.qkv.weight",
                                         "image_encoder.blocks.0.attn.proj.bias",
                                         "image_encoder.blocks.0.norm2.weight",
                                         "image_encoder.blocks.0.mlp.lin1.weight",
                                         "image_encoder.blocks.1.norm1.weight",
                                         "image_encoder.neck.0.weight",
                                         "image_encoder.neck.1.weight",
                                         "image_encoder.neck.2.weight",
                                         "image_encoder.neck.3.bias",
                                         "prompt_encoder.pe_layer.positional_encoding_gaussian_matrix",
                                         "prompt_encoder.point_embeddings.0.weight",
                                         "prompt_encoder.point_embeddings.3.weight",
                                         "prompt_encoder.not_a_point_embed.weight",
                                         "prompt_encoder.mask_downscaling.0.weight",
                                         "prompt_encoder.mask_downscaling.1.weight",
                                         "prompt_encoder.mask_downscaling.3.weight",
                                         "prompt_encoder.mask_downscaling.4.weight",
                                         "prompt_encoder.mask_downscaling.6.weight",
                                         "prompt_encoder.no_mask_embed.weight",
                                         "mask_decoder.transformer.layers.0.self_attn.q_proj.weight",
                                         "mask_decoder.transformer.layers.0.norm1.weight",
                                         "mask_decoder.transformer.layers.0.cross_attn_token_to_image.q_proj.weight",
                                         "mask_decoder.transformer.layers.0.norm2.weight",
                                         "mask_decoder.transformer.layers.0.mlp.lin1.weight",
                                         "mask_decoder.transformer.layers.0.norm3.weight",
                                         "mask_decoder.transformer.layers.0.norm4.weight",
                                         "mask_decoder.transformer.layers.0.cross_attn_image_to_token.q_proj.weight",
                                         "mask_decoder.transformer.layers.1.norm1.weight",
                                         "mask_decoder.transformer.final_attn_token_to_image.q_proj.weight",
                                         "mask_decoder.transformer.norm_final_attn.weight",
                                         "mask_decoder.iou_token.weight",
                                         "mask_decoder.mask_tokens.weight",
                                         "mask_decoder.output_upscaling.0.weight",
                                         "mask_decoder.output_upscaling.1.weight",
                                         "mask_decoder.output_upscaling.3.weight",
                                         "mask_decoder.output_hypernetworks_mlps.0.layers.0.weight",
                                         "mask_decoder.output_hypernetworks_mlps.2.layers.2.weight",
                                         "mask_decoder.iou_prediction_head.layers.0.weight"};
  for (size_t i = 1; i < ordered.size(); ++i) EXPECT_LT(place(ordered[i - 1]), place(ordered[i])) << ordered[i];
  EXPECT_EQ(place(ordered.front()), 0);
  EXPECT_EQ(names.size(), params.tensors.size());
}

TEST(SamParts, AnEncoderAloneMakesNoMasks) {
  SmallParams params;
  SamConfig config = small_sam();
  config.has_decoder = false;
  const std::string error =
      ": expected a mask decoder, which makes masks of prompts, got an image encoder alone, which only makes "
      "embeddings";
  const Sam sam(config, params.source());
  EXPECT_EQ(error_of([&] { sam.mask_decoder(); }), "model" + error);
  EXPECT_EQ(error_of([&] { sam.prompt_encoder(); }), "model" + error);
  EXPECT_EQ(error_of([&] { Sam(config, params.source("own")).mask_decoder(); }), "own" + error);
  EXPECT_EQ(sam.hq_head(), nullptr);
  config.has_decoder = true;
  EXPECT_EQ(Sam(config, params.source()).hq_head(), nullptr) << "without the layers of HQ-SAM";
}

// Keeps how each parameter is initialised.
class Initialisers : public ParamProvider {
 public:
  Tensor get(const std::string& path, const Shape& shape, const Initializer& init) override {
    initialisers[path] = init;
    return Tensor::zeros(shape);
  }
  bool has(const std::string& path) const override { return !path.ends_with("c.bias"); }
  void finish() override {}
  // The root of the mean square of many values.
  double size_of(const std::string& path) const {
    Tensor x = Tensor::empty({20000});
    initialisers.at(path)(x, 5);
    double square = 0;
    for (int64_t i = 0; i < x.numel(); ++i) square += double{x.data<float>()[i]} * x.data<float>()[i];
    return std::sqrt(square / 20000);
  }

  std::map<std::string, Initializer> initialisers;
};

TEST(SamParts, ANewModelBeginsAsTheReferences) {
  SamConfig config = small_sam();
  config.decoder.high_quality = true;
  Initialisers plain;
  const Sam sam(config, ParamSource(plain));
  for (const char* name :
       {"prompt_encoder.pe_layer.positional_encoding_gaussian_matrix", "prompt_encoder.point_embeddings.0.weight",
        "prompt_encoder.point_embeddings.3.weight", "prompt_encoder.not_a_point_embed.weight",
        "prompt_encoder.no_mask_embed.weight", "mask_decoder.iou_token.weight", "mask_decoder.mask_tokens.weight",
        "mask_decoder.hf_token.weight"}) {
    EXPECT_NEAR(plain.size_of(name), 1, 0.05) << name;
  }
  for (const char* name : {"image_encoder.pos_embed", "image_encoder.blocks.0.attn.rel_pos_h",
                           "image_encoder.blocks.1.attn.rel_pos_w", "image_encoder.neck.1.bias"}) {
    EXPECT_EQ(plain.size_of(name), 0) << name;
  }
  EXPECT_EQ(plain.size_of("image_encoder.neck.3.weight"), 1);
  Initialisers mobile;
  const SamTinyEncoder tiny(tiny_encoder(), ParamSource(mobile));
  EXPECT_EQ(mobile.size_of("layers.1.blocks.0.attn.attention_biases"), 0);
  for (const auto& [name, size] : {std::pair("weight", 1.0), std::pair("bias", 0.0), std::pair("running_mean", 0.0),
                                   std::pair("running_var", 1.0)}) {
    EXPECT_EQ(mobile.size_of(std::string("patch_embed.seq.0.bn.") + name), size) << name;
  }
  // A convolution begins uniform within 1 / √n of n inputs, a third of whose square is the variance.
  EXPECT_NEAR(mobile.size_of("patch_embed.seq.0.c.weight"), 1 / std::sqrt(3.0 * 27), 0.003);
  EXPECT_NEAR(mobile.size_of("layers.0.blocks.0.conv1.c.weight"), 1 / std::sqrt(3.0 * 3), 0.01);
  EXPECT_NEAR(mobile.size_of("layers.0.blocks.0.conv2.c.weight"), 1 / std::sqrt(3.0 * 9), 0.006);
}

// The decoder's layers, each on the token that belongs to it.
TEST(SamParts, TheDecoderReadsMasksAndScoresFromTheirTokens) {
  SamConfig config = small_sam();
  SmallParams params(0.4);
  const SamMaskDecoder decoder(config, params.source());
  const Tensor image = Tensor::randn({1, 2, 3, 8}, 1), positions = Tensor::randn({1, 2, 3, 8}, 2);
  const Tensor tokens = decoder.tokens(Tensor::randn({2, 1, 8}, 3));
  const SamMasks got = decoder.forward(image, positions, tokens);
  ASSERT_EQ(got.logits.shape(), (Shape{2, 3, 8, 12}));
  ASSERT_EQ(got.iou.shape(), (Shape{2, 3}));
  const SamTwoWayTransformer transformer(config.decoder, params.source("transformer"));
  const SamStreams streams = transformer.forward(tokens, image.view({1, 6, 8}), positions.view({1, 6, 8}));
  const SamMlp scores(8, 7, 3, params.source("iou_prediction_head"));
  EXPECT_TRUE(near(got.iou, scores.forward(streams.tokens.select(1, 0).contiguous())));
  const SamUpscaling upscaling(8, 5, 3, params.source("output_upscaling"));
  const Tensor cells = ops::activation(upscaling.forward(streams.image.view({2, 2, 3, 8})), Activation::gelu);
  for (int64_t mask = 0; mask < 3; ++mask) {
    const SamMlp network(8, 8, 3, params.source("output_hypernetworks_mlps").child(mask));
    const Tensor weights = network.forward(streams.tokens.select(1, 1 + mask).contiguous());  // [2, 3]
    const Tensor want = ops::matmul(cells.view({2, 96, 3}), weights.view({2, 3, 1})).view({2, 8, 12});
    EXPECT_TRUE(near(got.logits.select(1, mask).contiguous(), want)) << mask;
  }
}

TEST(SamParts, HqSamAddsItsMaskToEachOther) {
  SamConfig config = small_sam();
  config.decoder.high_quality = true;
  SmallParams params(0.05);
  const SamMaskDecoder decoder(config, params.source());
  ASSERT_NE(decoder.hq_head(), nullptr);
  const SamHqHead& head = *decoder.hq_head();
  EXPECT_EQ(head.intermediate_width(), 6);
  const Tensor embedding = Tensor::randn({1, 2, 3, 8}, 1), intermediate = Tensor::randn({1, 2, 3, 6}, 2);
  const Tensor features = head.features(embedding, intermediate);
  const SamUpscaling of_block(6, 8, 3, params.source("compress_vit_feat"));
  const SamUpscaling of_embedding(8, 5, 3, params.source("embedding_encoder"));
  EXPECT_TRUE(near(features, ops::add(of_block.forward(intermediate), of_embedding.forward(embedding))));

  const Tensor token = Tensor::randn({2, 1, 8}, 3), cells = small_map({2, 8, 12, 3}, 4, 0.02);
  const nn::Conv2d conv1({.in_chans = 3, .out_chans = 5, .kernel = 3}, params.source("embedding_maskfeature.0"));
  const nn::Conv2d conv2({.in_chans = 5, .out_chans = 3, .kernel = 3}, params.source("embedding_maskfeature.3"));
  const Tensor hidden = normalised(params, "embedding_maskfeature.1", conv1.forward(cells), 1e-6);
  const Tensor map = ops::add(conv2.forward(ops::activation(hidden, Activation::gelu)), features);
  const Tensor weights = SamMlp(8, 8, 3, params.source("hf_mlp")).forward(token);  // [2, 1, 3]
  EXPECT_TRUE(near(head.mask(token, cells, features),
                   ops::matmul(map.view({2, 96, 3}), weights.view({2, 3, 1})).view({2, 1, 96})));

  // Its token is behind those of the masks and in front of the prompts.
  const Tensor prompts = Tensor::randn({2, 1, 8}, 5), tokens = decoder.tokens(prompts);
  ASSERT_EQ(tokens.size(1), 6);
  EXPECT_TRUE(close(tokens.select(1, 4).narrow(0, 0, 1), head.token(), 0));
  EXPECT_TRUE(close(tokens.select(1, 5), prompts.select(1, 0), 0));
}

}  // namespace
}  // namespace vitrail::models
