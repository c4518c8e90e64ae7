// SPDX-License-Identifier: Apache-2.0
// Each of these arguments breaks one rule of a layer, whose error names the layer.
#include "tests/support/refused_calls.h"
#include "vitrail/nn/attention.h"
#include "vitrail/nn/attention_pool.h"
#include "vitrail/nn/layer_norm.h"
#include "vitrail/nn/multihead_attention.h"
#include "vitrail/nn/patch_embed.h"
#include "vitrail/nn/positional_encoding.h"

namespace vitrail::nn {
namespace {

using testing::expect_refused;

Tensor f(const Shape& shape) { return Tensor::zeros(shape); }

class RefusedByLayers : public ::testing::Test {
 protected:
  ParamSource source() { return ParamSource(random_); }

 private:
  RandomParams random_{1};
};

TEST_F(RefusedByLayers, OfMultiheadAttention) {
  const MultiheadAttention layer({.embed_dim = 24, .num_heads = 3}, source());
  const auto attend = [&](const Shape& query, const Shape& key, const Shape& value, const AttentionMasks& masks = {}) {
    return [=, &layer] { layer.forward(f(query), f(key), f(value), masks); };
  };
  const auto masked = [&](const AttentionMasks& masks) { return attend({2, 5, 24}, {2, 7, 24}, {2, 7, 24}, masks); };
  EXPECT_NO_THROW(masked({.attn_bias = f({2, 1, 5, 7})})());
  expect_refused("MultiheadAttention", {
                                           attend({5, 24}, {2, 7, 24}, {2, 7, 24}),
                                           attend({2, 5, 24}, {7, 24}, {7, 24}),
                                           attend({2, 5, 24}, {2, 7, 24}, {2, 6, 24}),
                                           attend({2, 5, 24}, {1, 7, 24}, {1, 7, 24}),
                                           attend({2, 5, 25}, {2, 7, 24}, {2, 7, 24}),
                                           attend({2, 5, 24}, {2, 7, 25}, {2, 7, 25}),
                                           masked({.attn_bias = f({5, 6})}),
                                           masked({.attn_bias = f({4, 7})}),
                                           masked({.attn_bias = f({7})}),
                                           masked({.attn_bias = f({3, 5, 7})}),
                                           masked({.attn_bias = f({1, 1, 5, 7})}),
                                           masked({.attn_bias = f({2, 2, 5, 7})}),
                                           masked({.attn_bias = f({2, 3, 1, 7})}),
                                           masked({.attn_bias = f({2, 3, 5, 1})}),
                                           masked({.key_padding_mask = Tensor::zeros({1, 7}, DType::boolean)}),
                                           masked({.key_padding_mask = Tensor::zeros({2, 5}, DType::boolean)}),
                                       });
}

TEST_F(RefusedByLayers, OfAttentionAndItsPool) {
  const Attention attention({.dim = 24, .num_heads = 3}, source());
  expect_refused("attention", {[&] { attention.forward(f({5, 24})); }, [&] { attention.forward(f({2, 5, 48})); }});
  const AttentionPoolLatent pool({.dim = 24, .num_heads = 3}, source());
  expect_refused("attention pool", {[&] { pool.forward(f({5, 24})); }, [&] { pool.forward(f({2, 5, 12})); }});
}

TEST_F(RefusedByLayers, OfPatchEmbeddings) {
  const auto layer = [this](const PatchEmbedConfig& config) { return [=, this] { PatchEmbed(config, source()); }; };
  const PatchEmbed fixed({.img_size = {8, 12}, .patch_size = {4, 4}, .embed_dim = 4}, source());
  const PatchEmbed any({.img_size = {8, 12}, .patch_size = {4, 4}, .embed_dim = 4, .dynamic_img_size = true}, source());
  expect_refused("patch_embed", {
                                    layer({.img_size = {8, 8}, .patch_size = {0, 4}, .embed_dim = 4}),
                                    layer({.img_size = {8, 8}, .patch_size = {4, 0}, .embed_dim = 4}),
                                    layer({.img_size = {8, 9}, .patch_size = {4, 4}, .embed_dim = 4}),
                                    layer({.img_size = {9, 8}, .patch_size = {4, 4}, .embed_dim = 4}),
                                    layer({.img_size = {0, 8}, .patch_size = {4, 4}, .embed_dim = 4}),
                                    layer({.img_size = {8, 0}, .patch_size = {4, 4}, .embed_dim = 4}),
                                    [&] {
                                      fixed.forward(f({1, 3, 12, 8}));
                                    },
                                    [&] {
                                      fixed.forward(f({1, 3, 8, 16}));
                                    },
                                    [&] {
                                      fixed.forward(f({1, 3, 4, 12}));
                                    },
                                    [&] {
                                      fixed.forward(f({3, 8, 12}));
                                    },
                                    [&] {
                                      fixed.forward(f({1, 4, 8, 12}));
                                    },
                                    [&] {
                                      any.forward(f({1, 3, 8, 13}));
                                    },
                                    [&] {
                                      any.forward(f({1, 3, 6, 12}));
                                    },
                                    [&] {
                                      any.forward(f({1, 3, 0, 12}));
                                    },
                                });
}

TEST_F(RefusedByLayers, OfNormsAndPositions) {
  const LayerNorm2d norm(8, source());
  expect_refused("LayerNorm2d", {[&] { norm.forward(f({8, 3, 3})); }, [&] { norm.forward(f({2, 3, 8, 8})); }});
  const PositionalEncoding encoding(8, 0, 10);
  expect_refused("PositionalEncoding", {
                                           [&] {
                                             encoding.forward(f({10, 8}));
                                           },
                                           [&] {
                                             encoding.forward(f({2, 10, 7}));
                                           },
                                           [&] {
                                             encoding.forward(f({2, 11, 8}));
                                           },
                                       });
  expect_refused("positions", {
                                  [] {
                                    resample_positions(f({17, 4}), 1, {4, 4}, {2, 2}, {});
                                  },
                                  [] {
                                    resample_positions(f({1, 17, 4}), 0, {4, 4}, {2, 2}, {});
                                  },
                                  [] {
                                    resample_positions(f({1, 17, 4}), 1, {4, 4}, {0, 2}, {});
                                  },
                                  [] {
                                    resample_positions(f({1, 17, 4}), 1, {4, 4}, {2, 0}, {});
                                  },
                              });
  expect_refused("sinusoidal positions", {[] { sinusoidal_positions(3, 5); }});
  expect_refused("sincos2d positions", {[] { sincos_positions_2d({2, 2}, 6); }});
}

}  // namespace
}  // namespace vitrail::nn
