// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/multihead_attention.h"

#include "tests/nn/layer_fixture.h"
#include "tests/nn/traced_layers.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/dropout.h"

namespace vitrail::nn {
namespace {

using testing::error_of;

class MultiheadAttentionGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(MultiheadAttentionGolden, EqualsTheReference) {
  const LayerFixture fixture("multihead_attention_" + GetParam());
  const MultiheadAttentionConfig config{.embed_dim = fixture.get<int64_t>("embed_dim"),
                                        .num_heads = fixture.get<int64_t>("num_heads"),
                                        .bias = fixture.get<bool>("bias")};
  const AttentionMasks masks{fixture.mask("key_padding_mask"), fixture.mask("attn_mask"), fixture.mask("attn_bias")};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const MultiheadAttention layer =
        build(fixture, dtype, [&](const ParamSource& params) { return MultiheadAttention(config, params); });
    const Tensor q = fixture["input_query"].to(dtype), k = fixture["input_key"].to(dtype),
                 v = fixture["input_value"].to(dtype);
    const MultiheadAttentionOutput averaged = layer.forward(q, k, v, masks);
    EXPECT_TRUE(matches(averaged.out, fixture["output"]));
    EXPECT_TRUE(matches(averaged.weights, fixture["output_weights_average"]));
    EXPECT_TRUE(matches(layer.forward(q, k, v, masks, true, false).weights, fixture["output_weights"]));
    const MultiheadAttentionOutput without = layer.forward(q, k, v, masks, false);
    EXPECT_TRUE(matches(without.out, fixture["output"])) << "without weights";
    EXPECT_FALSE(without.weights.defined());
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, MultiheadAttentionGolden,
                         ::testing::Values("self", "cross", "no_bias", "padding", "padding_all", "mask_ts", "mask_b1ts",
                                           "mask_bhts", "mask_i64", "mask_u8", "mask_and_padding", "bias_ts",
                                           "bias_bhts", "everything"),
                         name_of_case);

MultiheadAttention random_layer(DType dtype = DType::f32) {
  RandomParams params(4, dtype);
  return MultiheadAttention({.embed_dim = 24, .num_heads = 3}, ParamSource(params));
}

TEST(MultiheadAttention, AFullyMaskedRowGivesZeroWeightsAndTheProjectionsBias) {
  const MultiheadAttention layer = random_layer();
  const Tensor x = Tensor::randn({2, 5, 24}, 1);
  const Tensor mask = Tensor::full({5, 5}, 1, DType::u8);
  for (int i = 0; i < 5; ++i) mask.data<uint8_t>()[3 * 5 + i] = 0;  // the fourth query sees no key
  const MultiheadAttentionOutput result = layer.forward(x, x, x, {.attn_mask = mask}, true, false);
  EXPECT_TRUE(testing::close(result.weights.select(2, 3), Tensor::zeros({2, 3, 5}), 0));
  const Tensor bias = layer.parameter("out_proj.bias");
  EXPECT_TRUE(testing::close(result.out.select(1, 3), bias.expand({2, 24}), 0));
  const Tensor all = Tensor::full({2, 5}, 1, DType::boolean);
  EXPECT_TRUE(testing::close(layer.forward(x, x, x, {.key_padding_mask = all}).out, bias.expand({2, 5, 24}), 0));
}

TEST(MultiheadAttention, ZeroMasksAKeyInEveryIntegerDtype) {
  const MultiheadAttention layer = random_layer();
  const Tensor x = Tensor::randn({1, 4, 24}, 1);
  const Tensor lower = Tensor::zeros({4, 4}, DType::i64);
  for (int i = 0; i < 16; ++i) lower.data<int64_t>()[i] = i % 4 <= i / 4;
  const Tensor expected = layer.forward(x, x, x, {.attn_mask = lower}).out;
  EXPECT_FALSE(testing::close(layer.forward(x, x, x).out, expected, 1e-4));
  for (const DType dtype : {DType::i32, DType::i8, DType::u8, DType::boolean}) {
    EXPECT_TRUE(testing::close(layer.forward(x, x, x, {.attn_mask = lower.to(dtype)}).out, expected, 0));
  }
}

TEST(MultiheadAttention, AFloatingMaskMustBePassedAsABiasAndABiasMustBeFloating) {
  const MultiheadAttention layer = random_layer();
  const Tensor x = Tensor::randn({2, 5, 24}, 1);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    EXPECT_THROW(layer.forward(x, x, x, {.attn_mask = Tensor::zeros({5, 5}, dtype)}), Error);
    EXPECT_THROW(layer.forward(x, x, x, {.key_padding_mask = Tensor::zeros({2, 5}, dtype)}), Error);
    EXPECT_NO_THROW(layer.forward(x, x, x, {.attn_bias = Tensor::zeros({5, 5}, dtype)}));
  }
  EXPECT_THROW(layer.forward(x, x, x, {.attn_bias = Tensor::full({5, 5}, 1, DType::boolean)}), Error);
  EXPECT_THROW(layer.forward(x, x, x, {.attn_bias = Tensor::full({5, 5}, 1, DType::i64)}), Error);
}

TEST(MultiheadAttention, MaskShapesOutsideTheThreeFormsAreErrors) {
  const MultiheadAttention layer = random_layer();
  const Tensor q = Tensor::randn({2, 5, 24}, 1), k = Tensor::randn({2, 7, 24}, 2);
  const auto with = [&](const Shape& shape) {
    return layer.forward(q, k, k, {.attn_mask = Tensor::full(shape, 1, DType::boolean)});
  };
  for (const Shape& good : {Shape{5, 7}, Shape{2, 1, 5, 7}, Shape{2, 3, 5, 7}}) EXPECT_NO_THROW(with(good)) << good;
  for (const Shape& bad : {Shape{7, 5}, Shape{7}, Shape{2, 5, 7}, Shape{1, 1, 5, 7}, Shape{2, 2, 5, 7}, Shape{1, 7}}) {
    EXPECT_THROW(with(bad), Error) << bad;
    EXPECT_THROW(layer.forward(q, k, k, {.attn_bias = Tensor::zeros(bad)}), Error) << bad;
  }
  for (const Shape& bad : {Shape{2, 5}, Shape{7}, Shape{1, 7}, Shape{2, 1, 1, 7}}) {
    EXPECT_THROW(layer.forward(q, k, k, {.key_padding_mask = Tensor::zeros(bad, DType::boolean)}), Error) << bad;
  }
}

TEST(MultiheadAttention, ABiasInDoubleIsAddedInDouble) {
  const MultiheadAttention layer = random_layer(DType::f64);
  const Tensor x = Tensor::randn({1, 4, 24}, 1, DType::f64), bias = Tensor::randn({4, 4}, 2, DType::f64);
  const Tensor none = Tensor::zeros({1, 4}, DType::boolean);
  const Tensor expected = layer.forward(x, x, x, {.attn_bias = bias}).out;
  EXPECT_TRUE(testing::close(layer.forward(x, x, x, {.key_padding_mask = none, .attn_bias = bias}).out, expected, 0));
}

TEST(MultiheadAttention, RejectsShapesThatDoNotMatch) {
  const MultiheadAttention layer = random_layer();
  const auto zeros = [](const Shape& shape) { return Tensor::zeros(shape); };
  EXPECT_THROW(layer.forward(zeros({2, 5, 24}), zeros({2, 7, 24}), zeros({2, 6, 24})), Error);
  EXPECT_THROW(layer.forward(zeros({2, 5, 24}), zeros({1, 7, 24}), zeros({1, 7, 24})), Error);
  EXPECT_THROW(layer.forward(zeros({2, 5, 20}), zeros({2, 7, 24}), zeros({2, 7, 24})), Error);
  RandomParams params;
  EXPECT_THROW(MultiheadAttention({.embed_dim = 24, .num_heads = 5}, ParamSource(params)), Error);
  EXPECT_THROW(MultiheadAttention({.embed_dim = 24, .num_heads = 0}, ParamSource(params)), Error);
  EXPECT_THROW(MultiheadAttention({.embed_dim = 24, .num_heads = 3, .dropout = 1.0}, ParamSource(params)), Error);
}

TEST(MultiheadAttention, ReturnsTheWeightsBeforeDropout) {
  RandomParams params(4);
  MultiheadAttention layer({.embed_dim = 24, .num_heads = 3, .dropout = 0.5}, ParamSource(params));
  const Tensor x = Tensor::randn({2, 5, 24}, 1);
  const MultiheadAttentionOutput eval = layer.forward(x, x, x);
  layer.train();
  const MultiheadAttentionOutput train = layer.forward(x, x, x);
  EXPECT_TRUE(testing::close(train.weights, eval.weights, 1e-6));
  EXPECT_FALSE(testing::close(train.out, eval.out, 1e-3));
}

TEST_F(Layers, MultiheadAttentionNamesWhatDoesNotFit) {
  const MultiheadAttention layer({.embed_dim = 6, .num_heads = 3}, source());
  EXPECT_EQ(MultiheadAttentionConfig().dropout, 0.1);
  EXPECT_EQ(names_of(layer), (Names{"q_proj.weight", "q_proj.bias", "k_proj.weight", "k_proj.bias", "v_proj.weight",
                                    "v_proj.bias", "out_proj.weight", "out_proj.bias"}));
  EXPECT_EQ(layer.type(), "MultiheadAttention");
  const Tensor q = Tensor::zeros({2, 4, 6}), k = Tensor::zeros({2, 5, 6});
  const auto error = [&](const AttentionMasks& masks) { return error_of([&] { layer.forward(q, k, k, masks); }); };
  const auto boolean = [](const Shape& shape) { return Tensor::zeros(shape, DType::boolean); };
  EXPECT_ERROR(error({.key_padding_mask = boolean({2, 4})}), "MultiheadAttention", "[2, 4]");
  EXPECT_ERROR(error({.key_padding_mask = Tensor::zeros({2, 5})}), "MultiheadAttention", "f32");
  EXPECT_ERROR(error({.attn_mask = Tensor::zeros({4, 5})}), "MultiheadAttention", "f32");
  EXPECT_ERROR(error({.attn_mask = boolean({5, 4})}), "MultiheadAttention", "[5, 4]");
  EXPECT_ERROR(error({.attn_bias = Tensor::zeros({5, 4})}), "MultiheadAttention", "[5, 4]");
  EXPECT_ERROR(error({.attn_bias = boolean({4, 5})}), "MultiheadAttention", "bool");
  EXPECT_ERROR(error_of([&] { layer.forward(q, k, q); }), "MultiheadAttention", "[2, 4, 6], [2, 5, 6], [2, 4, 6]");
  EXPECT_ERROR(error_of([&] { MultiheadAttention({.embed_dim = 6, .num_heads = 4}, source()); }), "MultiheadAttention",
               "embed_dim 6 and 4 heads");
}

TEST_F(Layers, MultiheadAttentionDropsUnderItsName) {
  MultiheadAttention layer({.embed_dim = 6, .num_heads = 3, .dropout = 0.5, .bias = false}, source("cross"));
  EXPECT_EQ(names_of(layer), (Names{"q_proj.weight", "k_proj.weight", "v_proj.weight", "out_proj.weight"}));
  layer.train();
  const Tensor x = Tensor::randn({2, 4, 6}, 1);
  Tensor first;
  {
    const RandomScope scope(1, 2);
    first = layer.forward(x, x, x).out;
  }
  const RandomScope scope(1, 3);
  EXPECT_FALSE(testing::close(layer.forward(x, x, x).out, first, 1e-4));
}

}  // namespace
}  // namespace vitrail::nn
