// SPDX-License-Identifier: Apache-2.0
// The mask decoder of Segment Anything and of HQ-SAM, and its parts, against their formulas.
#include <gtest/gtest.h>

#include <string>

#include "tests/models/small_sam.h"
#include "tests/support/golden.h"
#include "vitrail/models/sam/mask_decoder.h"
#include "vitrail/nn/downsampled_attention.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"

namespace vitrail::models {
namespace {

using kernels::Activation;
using testing::close;

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
  const nn::DetrMlp mlp(3, 5, 2, params.source("head"));
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
  const nn::DetrMlp scores(8, 7, 3, params.source("iou_prediction_head"));
  EXPECT_TRUE(near(got.iou, scores.forward(streams.tokens.select(1, 0).contiguous())));
  const SamUpscaling upscaling(8, 5, 3, params.source("output_upscaling"));
  const Tensor cells = ops::activation(upscaling.forward(streams.image.view({2, 2, 3, 8})), Activation::gelu);
  for (int64_t mask = 0; mask < 3; ++mask) {
    const nn::DetrMlp network(8, 8, 3, params.source("output_hypernetworks_mlps").child(mask));
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
  const Tensor weights = nn::DetrMlp(8, 8, 3, params.source("hf_mlp")).forward(token);  // [2, 1, 3]
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
