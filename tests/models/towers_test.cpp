// SPDX-License-Identifier: Apache-2.0
// Text towers: masks, limits, parameters and the tokens that they pool.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "tests/models/support.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/text_tower.h"
#include "vitrail/models/text_transformer.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using TextConfig = TextTransformerConfig;
using Names = std::vector<std::string>;
using testing::close;
using testing::error_of;

TextConfig small_text() {
  return {.vocab_size = 9,
          .context_length = 5,
          .embed_dim = 4,
          .depth = 2,
          .num_heads = 2,
          .mlp_hidden = 6,
          .pool = TextPool::largest_id,
          .output_dim = 3};
}

TextTransformer tower_of(const TextConfig& config, DType dtype = DType::f32) {
  RandomParams params(1, dtype);
  return TextTransformer(config, ParamSource(params));
}

Names names_of(const TextConfig& config) {
  Names names;
  const TextTransformer tower = tower_of(config);
  for (const nn::NamedTensor& p : tower.named_parameters()) {
    if (!p.name.starts_with("blocks.")) names.push_back(p.name);
  }
  return names;
}

TEST(CausalMask, HidesLaterTokens) {
  const Tensor mask = causal_mask(4);
  ASSERT_EQ(mask.shape(), (Shape{1, 1, 4, 4}));
  for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(mask.data<float>()[i], i % 4 > i / 4 ? -INFINITY : 0) << i;
}

TEST(TextTransformer, DefaultsAreClips) {
  const TextConfig config;
  EXPECT_EQ(config.vocab_size, 49408);
  EXPECT_EQ(config.context_length, 77);
  EXPECT_EQ(config.act_layer, kernels::Activation::quick_gelu);
  EXPECT_EQ(config.norm_eps, 1e-5);
  EXPECT_TRUE(config.causal);
  EXPECT_EQ(config.pool, TextPool::first_eos);
  EXPECT_EQ(config.eos_token_id, 49407);
  EXPECT_EQ(config.pad_token_id, 0);
  EXPECT_EQ(config.output_dim, 512);
}

TEST(TextTransformer, FieldsHaveLimits) {
  struct Field {
    const char* name;
    int64_t TextConfig::*member;
    int64_t max;
  };
  const Field fields[] = {{"vocab_size", &TextConfig::vocab_size, int64_t{1} << 24},
                          {"context_length", &TextConfig::context_length, 1 << 16},
                          {"embed_dim", &TextConfig::embed_dim, 1 << 20},
                          {"depth", &TextConfig::depth, 4096},
                          {"num_heads", &TextConfig::num_heads, 1 << 20},
                          {"mlp_hidden", &TextConfig::mlp_hidden, 1 << 24},
                          {"output_dim", &TextConfig::output_dim, 1 << 20}};
  for (const Field& field : fields) {
    for (const int64_t value : {int64_t{-1}, field.max + 1}) {
      TextConfig config = small_text();
      config.*field.member = value;
      EXPECT_EQ(error_of([&] { tower_of(config); }),
                str("text tower: ", field.name, ": expected a value from 1 to ", field.max, ", got ", value));
    }
  }
  TextConfig config = small_text();
  config.depth = 0;
  EXPECT_ERROR(error_of([&] { tower_of(config); }), "text tower: depth", "0");
  for (const double eps : {-1e-6, 1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    config = small_text();
    config.norm_eps = eps;
    EXPECT_ERROR(error_of([&] { tower_of(config); }), "text tower: norm_eps", str(eps));
  }
}

TEST(TextTransformer, ParametersAreThoseOfItsOptions) {
  TextConfig config = small_text();
  EXPECT_EQ(names_of(config),
            (Names{"token_embedding.weight", "positional_embedding", "norm.weight", "norm.bias", "proj.weight"}));
  config.projection_bias = true;
  config.class_token = true;
  EXPECT_EQ(names_of(config), (Names{"token_embedding.weight", "positional_embedding", "cls_emb", "norm.weight",
                                     "norm.bias", "proj.weight", "proj.bias"}));
  const TextTransformer tower = tower_of(config);
  EXPECT_EQ(tower.parameter("token_embedding.weight").shape(), (Shape{9, 4}));
  EXPECT_EQ(tower.parameter("positional_embedding").shape(), (Shape{6, 4}));
  EXPECT_EQ(tower_of(small_text()).parameter("positional_embedding").shape(), (Shape{5, 4}));
  EXPECT_EQ(tower.parameter("cls_emb").shape(), (Shape{4}));
  EXPECT_EQ(tower.parameter("proj.weight").shape(), (Shape{3, 4}));
  EXPECT_EQ(tower.parameter("blocks.1.attn.qkv.bias").shape(), (Shape{12}));
  EXPECT_EQ(tower.parameter("blocks.0.mlp.fc1.weight").shape(), (Shape{6, 4}));
  EXPECT_EQ(tower.type(), "TextTransformer");
}

// Without a projection the pooled token is the embedding.
TEST(TextTransformer, AWidthOfZeroIsTheIdentity) {
  TextConfig config = small_text();
  config.output_dim = 0;
  const TextTransformer tower = tower_of(config);
  EXPECT_EQ(tower.config().output_dim, 4);
  const Tensor identity = Tensor::zeros({4, 4});
  for (int64_t i = 0; i < 4; ++i) identity.data<float>()[i * 5] = 1;
  EXPECT_TRUE(close(tower.parameter("proj.weight"), identity, 0));
  EXPECT_EQ(tower.forward(Tensor::from<int64_t>({2, 3}, {1, 2, 8, 3, 8, 1})).shape(), (Shape{2, 4}));
}

// Embeddings, blocks with the mask, norm, pooled row, projection.
TEST(TextTransformer, IsItsFormula) {
  for (const bool causal : {true, false}) {
    TextConfig config = small_text();
    config.causal = causal;
    config.norm_eps = 0.25;
    const TextTransformer tower = tower_of(config, DType::f64);
    const Tensor ids = Tensor::from<int64_t>({2, 4}, {1, 8, 3, 4, 2, 5, 8, 1});
    std::map<std::string, Tensor> values;
    Tensor out;
    {
      const nn::TraceScope scope([&](const std::string& name, const Tensor& value) { values[name] = value; });
      out = tower.forward(ids);
    }
    Tensor x = ops::embedding(ids, tower.parameter("token_embedding.weight"));
    x = ops::add(x, tower.parameter("positional_embedding").narrow(0, 0, 4));
    EXPECT_TRUE(close(values.at("embedded"), x, 1e-14));
    for (int64_t i = 0; i < 2; ++i) {
      const auto p = [&](const std::string& name) { return tower.parameter(str("blocks.", i, ".", name)); };
      const Tensor normed = ops::layer_norm(x, p("norm1.weight"), p("norm1.bias"), 0.25);
      const Tensor qkv =
          ops::linear(normed, p("attn.qkv.weight"), p("attn.qkv.bias")).view({2, 4, 3, 2, 2}).permute({2, 0, 3, 1, 4});
      const Tensor attended = ops::attention(qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2), 1 / std::sqrt(2.0),
                                             causal ? causal_mask(4) : Tensor())
                                  .out;
      x = ops::add(x, ops::linear(attended, p("attn.proj.weight"), p("attn.proj.bias")));
      const Tensor again = ops::layer_norm(x, p("norm2.weight"), p("norm2.bias"), 0.25);
      const Tensor hidden = ops::linear(again, p("mlp.fc1.weight"), p("mlp.fc1.bias"), kernels::Activation::quick_gelu);
      x = ops::add(x, ops::linear(hidden, p("mlp.fc2.weight"), p("mlp.fc2.bias")));
    }
    x = ops::layer_norm(x, tower.parameter("norm.weight"), tower.parameter("norm.bias"), 0.25);
    const Tensor pooled =
        ops::cat({x.narrow(0, 0, 1).narrow(1, 1, 1).view({1, 4}), x.narrow(0, 1, 1).narrow(1, 2, 1).view({1, 4})}, 0);
    EXPECT_TRUE(close(values.at("pooled"), pooled, 1e-12));
    EXPECT_TRUE(close(out, ops::linear(pooled, tower.parameter("proj.weight"), {}), 1e-12));
    EXPECT_TRUE(close(tower.forward(ids), out, 1e-12));
  }
}

TEST(TextTransformer, AClassTokenNeedsTextsOfTheWholeLength) {
  TextConfig config = small_text();
  config.class_token = true;
  const TextTransformer tower = tower_of(config);
  const auto error = [&](const Shape& shape) {
    return error_of([&] { tower.forward(Tensor::full(shape, 1, DType::i64)); });
  };
  EXPECT_ERROR(error({2, 4}), "text tower", "[2, 4]");
  EXPECT_ERROR(error({2, 6}), "text tower", "[2, 6]");
  EXPECT_ERROR(error_of([&] {
                 tower_of(small_text()).forward(Tensor::full({2, 6}, 1, DType::i64));
               }),
               "text tower", "[2, 6]");
  const Tensor rows = tower.pooled_rows(Tensor::full({3, 5}, 1, DType::i64));
  for (int64_t b = 0; b < 3; ++b) EXPECT_EQ(rows.data<int64_t>()[b], b * 6 + 5) << "behind the text";
  EXPECT_FALSE(tower_of(small_text()).padding_mask(Tensor::full({1, 5}, 0, DType::i64)).defined());
}

// A key is hidden from all tokens if the token in front of it is padding.
TEST(TextTransformer, PaddingMasksAreCausalOrNot) {
  for (const bool causal : {true, false}) {
    TextConfig config = small_text();
    config.class_token = true;
    config.causal = causal;
    config.pad_token_id = 7;
    const std::vector<int64_t> ids{3, 7, 0, 7, 7, 1, 2, 3, 4, 7};
    const Tensor mask = tower_of(config).padding_mask(Tensor::from<int64_t>({2, 5}, ids).to(DType::i32));
    for (int64_t i = 0; i < 2 * 36; ++i) {
      const int64_t text = i / 36, query = i / 6 % 6, key = i % 6;
      const bool padded = key > 0 && ids[static_cast<size_t>(text * 5 + key - 1)] == 7;
      const bool later = causal && key > query;
      EXPECT_EQ(mask.data<float>()[i], padded || later ? -INFINITY : 0) << text << " " << query << " " << key;
    }
  }
}

TEST(TextTransformer, NamesTheTextWithoutAnEnd) {
  TextConfig config = small_text();
  config.pool = TextPool::first_eos;
  config.eos_token_id = 6;
  EXPECT_ERROR(error_of([&] {
                 tower_of(config).pooled_rows(Tensor::from<int64_t>({2, 3}, {1, 6, 6, 1, 2, 3}));
               }),
               "text 1", "none");
}

TEST(TextTower, HasTheScaleAndTheBiasOfItsFile) {
  const OpenedModel clip = open_model(testing::model_fixture("hf_clip"));
  EXPECT_TRUE(has_text_tower(clip));
  const TextTower tower = build_text_tower(clip);
  EXPECT_EQ(tower.logit_scale, clip.checkpoint->tensor("logit_scale").to(DType::f64).item<double>());
  EXPECT_EQ(tower.logit_bias, 0);
  const OpenedModel siglip = open_model(testing::model_fixture("hf_siglip"));
  EXPECT_EQ(build_text_tower(siglip).logit_bias, siglip.checkpoint->tensor("logit_bias").to(DType::f64).item<double>());
  EXPECT_FALSE(has_text_tower(open_model(testing::model_fixture("timm_token"))));
  const auto path = testing::model_fixture("timm_token");
  EXPECT_ERROR(error_of([&] { build_text_tower(open_model(path)); }), path.string(),
               "an image model alone (\"vit_tiny_patch16_224\")");
}

TEST(TextTower, RefusesAScaleAndABiasThatAreNotFinite) {
  const fs::path folder = testing::model_fixture("hf_siglip").parent_path();
  const weights::Checkpoint good = weights::Checkpoint::open(testing::model_fixture("hf_siglip"));
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const std::string name : {"logit_scale", "logit_bias"}) {
    for (const double value : {nan, infinity, -infinity, 1e39}) {
      std::map<std::string, Tensor> tensors;
      for (const std::string& key : good.names()) tensors[key] = good.tensor(key);
      tensors[name] = Tensor::full({1}, value, DType::f64);
      const fs::path path = saved(tensors, read_text_file(folder / "config.json"));
      fs::copy_file(folder / "preprocessor_config.json", path.parent_path() / "preprocessor_config.json",
                    fs::copy_options::skip_existing);
      EXPECT_ERROR(error_of([&] { build_text_tower(open_model(path)); }), str(path.string(), ": ", name), str(value));
    }
  }
}

}  // namespace
}  // namespace vitrail::models
