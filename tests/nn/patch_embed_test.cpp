// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/patch_embed.h"

#include "tests/nn/layer_fixture.h"
#include "tests/nn/traced_layers.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/rms_norm.h"

namespace vitrail::nn {
namespace {

using testing::error_of;

PatchEmbedConfig patch_embed_config_of(const LayerFixture& fixture) {
  PatchEmbedConfig config{.img_size = fixture.get<std::array<int64_t, 2>>("img_size"),
                          .patch_size = fixture.get<std::array<int64_t, 2>>("patch_size"),
                          .in_chans = fixture.get<int64_t>("in_chans"),
                          .embed_dim = fixture.get<int64_t>("embed_dim"),
                          .bias = fixture.get<bool>("bias"),
                          .flatten = fixture.get<bool>("flatten"),
                          .allow_remainder = fixture.get<bool>("allow_remainder")};
  if (fixture.get<bool>("norm")) config.norm_eps = fixture.get<double>("norm_eps");
  if (fixture.get<bool>("input_norm")) config.input_norm_eps = fixture.get<double>("norm_eps");
  return config;
}

class PatchEmbedGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(PatchEmbedGolden, EqualsTheReference) {
  const LayerFixture fixture("patch_embed_" + GetParam());
  for (const DType dtype : {DType::f32, DType::f64}) {
    const PatchEmbed layer = build(
        fixture, dtype, [&](const ParamSource& params) { return PatchEmbed(patch_embed_config_of(fixture), params); });
    EXPECT_TRUE(matches(layer.forward(fixture["input"].to(dtype)), fixture["output"]));
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, PatchEmbedGolden,
                         ::testing::Values("plain", "no_bias", "norm", "feature_map", "rectangle", "input_norm",
                                           "both_norms", "remainder"),
                         name_of_case);

PatchEmbed random_patch_embed(const PatchEmbedConfig& config) {
  RandomParams params(1);
  return PatchEmbed(config, ParamSource(params));
}

TEST(PatchEmbed, TheConstructorRejectsAnImageSizeThatThePatchSizeDoesNotDivide) {
  EXPECT_ERROR(error_of([] {
                 random_patch_embed({.img_size = {225, 224}, .embed_dim = 4});
               }),
               "patch_embed", "225×224");
  EXPECT_THROW(random_patch_embed({.img_size = {224, 225}, .embed_dim = 4}), Error);
  EXPECT_THROW(random_patch_embed({.img_size = {8, 8}, .embed_dim = 4, .allow_remainder = true}),
               Error);  // smaller than a patch
  EXPECT_THROW(random_patch_embed({.patch_size = {0, 16}, .embed_dim = 4}), Error);
  EXPECT_THROW(random_patch_embed({.patch_size = {16, -16}, .embed_dim = 4}), Error);
  EXPECT_THROW(random_patch_embed({.patch_size = {0, 0}, .embed_dim = 4, .allow_remainder = true}), Error);
}

TEST(PatchEmbed, AFixedSizeRejectsOtherImages) {
  const PatchEmbed layer = random_patch_embed({.img_size = {32, 48}, .embed_dim = 4});
  EXPECT_EQ(layer.forward(Tensor::zeros({1, 3, 32, 48})).shape(), (Shape{1, 6, 4}));
  EXPECT_ERROR(error_of([&] { layer.forward(Tensor::zeros({1, 3, 48, 32})); }), "patch_embed", "48×32");
  EXPECT_THROW(layer.forward(Tensor::zeros({1, 1, 32, 48})), Error);
  EXPECT_THROW(layer.forward(Tensor::zeros({3, 32, 48})), Error);
}

TEST(PatchEmbed, ADynamicSizeAcceptsAnyMultipleOfThePatchSize) {
  const PatchEmbed layer = random_patch_embed({.img_size = {32, 32}, .embed_dim = 4, .dynamic_img_size = true});
  EXPECT_EQ(layer.forward(Tensor::zeros({2, 3, 16, 80})).shape(), (Shape{2, 5, 4}));
  EXPECT_EQ(layer.grid_of(48, 16), (std::array<int64_t, 2>{3, 1}));
  EXPECT_THROW(layer.forward(Tensor::zeros({2, 3, 33, 32})), Error);
  EXPECT_THROW(layer.forward(Tensor::zeros({2, 3, 0, 32})), Error);
}

TEST(PatchEmbed, AFeatureMapIsTheTokensInAnotherLayout) {
  PatchEmbedConfig config{.img_size = {8, 12}, .patch_size = {4, 4}, .embed_dim = 5};
  const Tensor image = Tensor::randn({2, 3, 8, 12}, 1);
  const Tensor tokens = random_patch_embed(config).forward(image);
  config.flatten = false;
  const Tensor map = random_patch_embed(config).forward(image);
  EXPECT_EQ(map.shape(), (Shape{2, 5, 2, 3}));
  EXPECT_TRUE(testing::close(map.flatten(2).transpose(1, 2), tokens, 0));
}

TEST_F(Layers, PatchEmbeddingsNormaliseWithTheirKind) {
  const PatchEmbed layer({.img_size = {4, 6},
                          .patch_size = {2, 3},
                          .in_chans = 2,
                          .embed_dim = 5,
                          .norm_eps = 0.5,
                          .input_norm_eps = 0.25,
                          .norm_layer = NormLayer::rms_norm},
                         source("patch_embed"));
  EXPECT_EQ(names_of(layer), (Names{"input_norm.weight", "proj.weight", "proj.bias", "norm.weight"}));
  EXPECT_EQ(layer.parameter("input_norm.weight").shape(), (Shape{12}));
  EXPECT_EQ(layer.parameter("proj.weight").shape(), (Shape{5, 2, 2, 3}));
  EXPECT_EQ(layer.grid_of(4, 6), (std::array<int64_t, 2>{2, 2}));
  const Tensor image = Tensor::randn({1, 2, 4, 6}, 1);
  const Tensor out = layer.forward(image);
  // The first patch by hand: rows 0 and 1, columns 0 to 2, in (c, y, x) order.
  std::vector<float> pixels;
  for (int64_t c = 0; c < 2; ++c) {
    for (int64_t i = 0; i < 6; ++i) pixels.push_back(image.data<float>()[(c * 4 + i / 3) * 6 + i % 3]);
  }
  const Tensor normed = ops::rms_norm(Tensor::from<float>({1, 12}, pixels), {}, 0.25);
  const Tensor projected =
      ops::linear(normed, layer.parameter("proj.weight").view({5, 12}), layer.parameter("proj.bias"));
  EXPECT_TRUE(testing::close(out.narrow(1, 0, 1).view({1, 5}), ops::rms_norm(projected, {}, 0.5), 1e-5));
  EXPECT_ERROR(error_of([&] { layer.forward(Tensor::zeros({1, 3, 4, 6})); }), "patch_embed", "[1, 3, 4, 6]");
  EXPECT_ERROR(error_of([&] { PatchEmbed({.patch_size = {0, 3}}, source()); }), "patch_embed", "0×3");
  const PatchEmbed plain({.img_size = {4, 6}, .patch_size = {2, 3}, .embed_dim = 5}, source("patch_embed"));
  const Values values = traced_by([&] { plain.forward(Tensor::randn({1, 3, 4, 6}, 1)); });
  EXPECT_TRUE(testing::close(values.at("patch_embed.norm"), values.at("patch_embed.transposed"), 0));
  EXPECT_EQ(PatchEmbedConfig().img_size, (std::array<int64_t, 2>{224, 224}));
  EXPECT_EQ(PatchEmbedConfig().patch_size, (std::array<int64_t, 2>{16, 16}));
  EXPECT_EQ(PatchEmbedConfig().embed_dim, 768);
}

TEST_F(Layers, PatchEmbeddingsMayIgnoreARemainder) {
  const PatchEmbed layer(
      {.img_size = {5, 8}, .patch_size = {2, 3}, .embed_dim = 4, .dynamic_img_size = true, .allow_remainder = true},
      source());
  EXPECT_EQ(layer.grid_of(5, 8), (std::array<int64_t, 2>{2, 2}));
  EXPECT_EQ(layer.grid_of(2, 3), (std::array<int64_t, 2>{1, 1}));
  EXPECT_EQ(layer.grid_of(7, 3), (std::array<int64_t, 2>{3, 1}));
  EXPECT_ERROR(error_of([&] { layer.grid_of(1, 3); }), "patch_embed", "1×3");
  EXPECT_ERROR(error_of([&] { layer.grid_of(2, 2); }), "patch_embed", "2×2");
}

}  // namespace
}  // namespace vitrail::nn
