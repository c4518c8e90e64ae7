// SPDX-License-Identifier: Apache-2.0
// The text towers of dual models against their references, eager and compiled, and the gradients of one.
#include "vitrail/models/text_transformer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/models/load.h"
#include "vitrail/nn/copied_params.h"

namespace vitrail::models {
namespace {

using kernels::Precision;

testing::Golden golden_of(const std::string& name) {
  return testing::read_golden(testing::model_fixture(name).parent_path() / "golden.safetensors");
}

std::vector<std::string> dual_fixtures() {
  std::vector<std::string> names = testing::model_fixtures();
  std::erase_if(names, [](const std::string& name) { return !golden_of(name).has("text_embeds"); });
  return names;
}

TextTower tower_of(const std::string& name) { return build_text_tower(open_model(testing::model_fixture(name))); }

class TextTowers : public ::testing::TestWithParam<std::string> {};

// The tolerance of the parity tests of image towers.
TEST_P(TextTowers, EmbeddingsEqualTheReference) {
  const testing::Golden golden = golden_of(GetParam());
  const TextTower tower = tower_of(GetParam());
  EXPECT_TRUE(testing::close(tower.model.forward(golden["ids"].to(DType::i64)), golden["text_embeds"], 1e-5, 1e-5));
}

// Compiled in each precision against the eager tower.  Errors as those of tests/infer/function_session_test.cpp, for
// the layers of two blocks and the projection.
TEST_P(TextTowers, CompiledEqualsEager) {
  const Tensor ids = golden_of(GetParam())["ids"].to(DType::i64);
  const TextTower eager = tower_of(GetParam());
  const Tensor want = eager.model.forward(ids);
  for (const auto& [precision, tolerance] :
       {std::pair(Precision::fp32, 1e-5), std::pair(Precision::half, 0.02), std::pair(Precision::int8, 0.05)}) {
    TextTower tower = tower_of(GetParam());
    const infer::FunctionSession session(tower.model,
                                         [&](const infer::NamedTensors& in) -> infer::NamedTensors {
                                           const Tensor mask = in.size() > 2 ? in[2].tensor : Tensor();
                                           return {{"out", tower.model.forward(in[0].tensor, in[1].tensor, mask)}};
                                         },
                                         {.precision = precision});
    infer::NamedTensors inputs{{"ids", ids}, {"rows", eager.model.pooled_rows(ids)}};
    if (const Tensor mask = eager.model.padding_mask(ids); mask.defined()) inputs.push_back({"mask", mask});
    const Tensor got = session.run(inputs)[0].tensor;
    double length = 0;
    for (int64_t i = 0; i < want.numel(); ++i) length += want.data<float>()[i] * want.data<float>()[i];
    EXPECT_LT(std::sqrt(testing::squared_error(got, want) / length), tolerance) << name_of(precision);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TextTowers, ::testing::ValuesIn(dual_fixtures()),
                         [](const auto& info) { return testing::test_name(info.param); });

TextTransformerConfig small_config() {
  return {.vocab_size = 7,
          .context_length = 5,
          .embed_dim = 4,
          .depth = 1,
          .num_heads = 2,
          .mlp_hidden = 6,
          .pool = TextPool::largest_id,
          .output_dim = 3,
          .projection_bias = true};
}

TextTransformer small_tower(const TextTransformerConfig& config = small_config()) {
  RandomParams random(1, DType::f64);
  return TextTransformer(config, ParamSource(random));
}

// With respect to every parameter: the lookup of tokens, positions, causal attention, and the pooled row.
void expect_correct_gradients(const TextTransformerConfig& config) {
  const TextTransformer tower = small_tower(config);
  const Tensor ids = Tensor::from<int64_t>({2, 5}, {0, 3, 3, 6, 6, 1, 6, 2, 2, 2});
  std::vector<Tensor> values;
  for (const nn::NamedTensor& parameter : tower.named_parameters()) {
    const Tensor value = Tensor::randn(parameter.tensor.shape(), values.size() + 1, DType::f64);
    values.push_back(value);
  }
  const auto forward = [&](const std::vector<Tensor>& in) {
    std::map<std::string, Tensor> replaced;
    const auto named = tower.named_parameters();
    for (size_t i = 0; i < in.size(); ++i) replaced[named[i].name] = in[i];
    nn::CopiedParams params(tower, replaced);
    return TextTransformer(tower.config(), ParamSource(params)).forward(ids);
  };
  const autograd::GradientCheck check = autograd::check_gradients(forward, values);
  EXPECT_LT(check.worst, 1e-7) << tower.named_parameters()[static_cast<size_t>(check.input)].name;
}

TEST(TextTransformer, GradientsEqualCentralDifferences) {
  TextTransformerConfig config = small_config();
  expect_correct_gradients(config);
  config.class_token = true;
  config.pad_token_id = 2;
  expect_correct_gradients(config);
}

// The mask of OpenCLIP's CoCa: the first pad token is seen, and the class token only behind a text without padding.
TEST(TextTransformer, APaddingMaskHidesTheKeysBehindPadTokens) {
  TextTransformerConfig config = small_config();
  config.class_token = true;
  const Tensor mask = small_tower(config).padding_mask(Tensor::from<int64_t>({2, 5}, {3, 4, 0, 0, 0, 3, 4, 5, 6, 1}));
  ASSERT_EQ(mask.shape(), (Shape{2, 1, 6, 6}));
  const auto seen_by_class_token = [&](int64_t text) {
    std::vector<int64_t> keys;
    for (int64_t key = 0; key < 6; ++key) {
      if (mask.data<float>()[(text * 6 + 5) * 6 + key] == 0) keys.push_back(key);
    }
    return keys;
  };
  EXPECT_EQ(seen_by_class_token(0), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(seen_by_class_token(1), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_LT(mask.data<float>()[(6 + 0) * 6 + 1], -1e30F);  // a later token
}

// A causal tower reads nothing behind the pooled token, another one does.
TEST(TextTransformer, ReadsWhatFollowsThePooledTokenUnlessItIsCausal) {
  const Tensor ids = Tensor::from<int64_t>({1, 4}, {0, 3, 6, 1}), other = Tensor::from<int64_t>({1, 4}, {0, 3, 6, 2});
  for (const bool causal : {true, false}) {
    TextTransformerConfig config = small_config();
    config.causal = causal;
    const TextTransformer tower = small_tower(config);
    EXPECT_EQ(bool(testing::close(tower.forward(ids), tower.forward(other), 1e-12)), causal);
  }
}

TEST(TextTransformer, PoolsTheFirstEndTheLargestIdOrTheLastToken) {
  const Tensor ids = Tensor::from<int64_t>({2, 4}, {0, 5, 6, 5, 5, 1, 2, 3});
  const auto rows = [&](TextPool pool) {
    TextTransformerConfig config = small_config();
    config.pool = pool;
    config.eos_token_id = 5;
    const Tensor result = small_tower(config).pooled_rows(ids);
    return std::vector<int64_t>(result.data<int64_t>(), result.data<int64_t>() + 2);
  };
  EXPECT_EQ(rows(TextPool::first_eos), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(rows(TextPool::largest_id), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(rows(TextPool::last), (std::vector<int64_t>{3, 7}));
}

TEST(TextTransformer, NamesWhatDoesNotFit) {
  TextTransformerConfig config = small_config();
  config.pool = TextPool::first_eos;
  config.eos_token_id = 4;
  const TextTransformer tower = small_tower(config);
  const auto message_of = [&](const Tensor& ids) { return testing::error_of([&] { tower.forward(ids); }); };
  EXPECT_TRUE(testing::contains(message_of(Tensor::from<int64_t>({1, 2}, {0, 1})), "text 0: expected the end-of-text"));
  EXPECT_TRUE(testing::contains(message_of(Tensor::from<int64_t>({1, 6}, {0, 1, 2, 3, 4, 4})), "N from 1 to 5"));
  config.vocab_size = 0;
  EXPECT_TRUE(testing::contains(testing::error_of([&] { small_tower(config); }), "vocab_size"));
}

TEST(BuildTextTower, NamesAnImageModelAloneAndWeightsWithoutTexts) {
  const std::string alone = testing::error_of([] { tower_of("timm_token"); });
  EXPECT_TRUE(testing::contains(alone, "an image model alone")) << alone;
  const auto opened = open_model(testing::model_fixture("hf_clip_vision_projection"),
                                 {.config = testing::fixture("models/hf_clip/config.json").string()});
  const std::string without = testing::error_of([&] { build_text_tower(opened); });
  EXPECT_TRUE(testing::contains(without, "the tensors of a text tower")) << without;
}

}  // namespace
}  // namespace vitrail::models
