// SPDX-License-Identifier: Apache-2.0
// The learning page against a traced forward pass, and what its file must be.
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/learning_page.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/base64_internal.h"
#include "vitrail/base/digest_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/explain/block_arrays_internal.h"
#include "vitrail/models/head_ablation.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/softmax.h"

namespace vitrail::explain {
namespace {

using testing::fixture;
using testing::PageOfModel;
using Json = nlohmann::ordered_json;

std::map<std::string, Tensor> trace_of(const PageOfModel& page) {
  std::map<std::string, Tensor> values;
  const models::VisionTransformer model = models::build_model(page.opened);
  const image::ImageView photo = page.photo;
  values["images"] = page.model.preprocess({&photo, 1});
  const nn::TraceScope scope([&](const std::string& name, const Tensor& value) { values[name] = value.contiguous(); });
  model.forward(values["images"]);
  return values;
}

Tensor rows_of(const Tensor& values, const Json& entry) {
  if (!entry.contains("rows")) return values;
  const auto rows = entry["rows"].get<std::vector<int64_t>>();
  Shape shape = values.shape();
  shape[shape.rank() - 2] = std::ssize(rows);
  const Tensor chosen = Tensor::empty(shape);
  for (size_t i = 0; i < rows.size(); ++i)
    chosen.narrow(values.rank() - 2, static_cast<int64_t>(i), 1).copy_(values.narrow(values.rank() - 2, rows[i], 1));
  return chosen;
}

class PageOfFixture : public ::testing::TestWithParam<std::string> {};

// Each array that is a value of the trace has it, to its max_error, which is small.
TEST_P(PageOfFixture, HasTheValuesOfTheForwardPass) {
  for (const Detail detail : {Detail::small, Detail::full}) {
    const PageOfModel page(fixture("models/" + GetParam()), {.detail = detail});
    const auto trace = trace_of(page);
    int compared = 0;
    for (const auto& [name, entry] : page.manifest.at("tensors").items()) {
      const auto found = trace.find(name);
      if (found == trace.end()) continue;
      ++compared;
      const Tensor want = rows_of(found->second, entry);
      const double error = entry["max_error"].get<double>();
      EXPECT_TRUE(testing::close(page.array(name), want, error * 1.001 + 1e-6)) << name;
      double largest = 0;
      for (int64_t i = 0; i < want.numel(); ++i)
        largest = std::max(largest, std::fabs(static_cast<double>(want.data<float>()[i])));
      EXPECT_LE(error, largest * (entry["dtype"] == "i8" ? 0.5 / 127 : 1.0 / 2048) + 1e-9) << name;
    }
    EXPECT_GT(compared, 8);
  }
}

// What the page computes from its arrays is the trace's value, to the max_error that the manifest says.
TEST_P(PageOfFixture, DerivesScoresWeightsAndContext) {
  const PageOfModel page(fixture("models/" + GetParam()));
  const auto trace = trace_of(page);
  const double scale = page.manifest["model"]["scale"].get<double>();
  for (int64_t block = 0; block < page.manifest["model"]["depth"].get<int64_t>(); ++block) {
    const std::string layer = str("blocks.", block, ".attn.");
    const Tensor q = page.array(layer + "q"), k = page.array(layer + "k"), v = page.array(layer + "v");
    const Tensor products = ops::matmul(q, k.transpose(-2, -1).contiguous());
    for (int64_t i = 0; i < products.numel(); ++i) products.data<float>()[i] *= static_cast<float>(scale);
    if (page.manifest["tensors"].contains(layer + "bias")) {
      const Tensor bias = page.array(layer + "bias");
      for (int64_t i = 0; i < products.numel(); ++i) products.data<float>()[i] += bias.data<float>()[i];
    }
    const Tensor weights = ops::softmax(products), context = ops::matmul(weights, v);
    for (const auto& [name, value] :
         {std::pair<std::string, Tensor>{"scores", products}, {"weights", weights}, {"context", context}}) {
      const double error = page.manifest["derived"].at(layer + name)["max_error"].get<double>();
      EXPECT_TRUE(testing::close(value, trace.at(layer + name), error * 1.01 + 1e-5)) << layer << name;
      EXPECT_LT(error, 0.05) << layer << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PageOfFixture,
                         ::testing::Values("timm_token", "timm_avg", "timm_distilled", "timm_reg_tokens", "timm_map",
                                           "hf_clip", "hf_siglip", "hf_beit", "hf_dinov3", "dinov2_hub_registers",
                                           "timm_non_square", "seed_004"),
                         [](const auto& param) { return param.param; });

TEST(LearningPage, AllowsItsOwnScriptAlone) {
  const PageOfModel page(fixture("models/timm_token"));
  const size_t begin = page.page.html.rfind("<script>") + 8, end = page.page.html.rfind("</script>");
  const std::string script = page.page.html.substr(begin, end - begin);
  const std::string hex = sha256(std::as_bytes(std::span(script)));
  std::vector<std::byte> digest;
  for (size_t i = 0; i < hex.size(); i += 2)
    digest.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  EXPECT_NE(page.page.html.find("script-src 'sha256-" + to_base64(digest) + "'"), std::string::npos);
  EXPECT_NE(page.page.html.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.page.html.find("{{"), std::string::npos);
  for (const char* outside : {"http://", "https://", "src="})
    EXPECT_EQ(page.element("texts").find(outside), std::string::npos) << outside;
}

// A name that would end an element of data, and one with a placeholder of the frame.
TEST(LearningPage, KeepsHostileNamesInItsData) {
  const std::string hostile = "</script><script>alert(1)</script>\u202e{{script}}.png";
  const PageOfModel page(fixture("models/timm_token"), {}, hostile);
  EXPECT_EQ(page.manifest["image"]["name"], hostile);
  EXPECT_EQ(page.page.html.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.page.html.find("{{script}}", page.page.html.find("id=\"texts\"")), std::string::npos);
}

TEST(LearningPage, IsOfAnImageOfOnePixel) {
  const PageOfModel page(fixture("models/timm_token"), {}, "dot.png", 1, 1);
  EXPECT_EQ(page.manifest["image"]["width"], 1);
  EXPECT_EQ(page.array("images").numel(), page.model.preprocess(std::array{image::ImageView(page.photo)}).numel());
}

TEST(LearningPage, IsWithoutPredictionsForAModelWithoutClasses) {
  const PageOfModel page(fixture("models/dinov2_hub_registers"));
  for (const char* member : {"prediction", "attributions", "gradients"}) EXPECT_FALSE(page.manifest.contains(member));
  EXPECT_TRUE(page.manifest["tensors"].contains("blocks.0.attn.q"));
  EXPECT_EQ(
      testing::error_of([] { PageOfModel(fixture("models/dinov2_hub_registers"), {.target = "1"}); }).substr(0, 6),
      "class:");
}

TEST(LearningPage, ExplainsTheClassThatIsAskedFor) {
  const PageOfModel page(fixture("models/timm_token"), {.target = "2"});
  EXPECT_EQ(page.manifest["prediction"]["class"], 2);
  EXPECT_EQ(page.manifest["gradients"]["class"], 2);
  const PageOfModel predicted(fixture("models/timm_token"));
  EXPECT_EQ(predicted.manifest["prediction"]["class"], predicted.manifest["prediction"]["top"][0]["class"]);
  EXPECT_NE(testing::error_of([] { PageOfModel(fixture("models/timm_token"), {.target = "99"}); }), "");
}

// The last block of the logit lens is the model's prediction.
TEST(LearningPage, EndsTheLogitLensAtThePrediction) {
  const PageOfModel page(fixture("models/timm_distilled"));
  const Tensor classes = page.array("explain.lens.class"), probability = page.array("explain.lens.probability");
  const int64_t last = classes.size(0) - 1, top = classes.size(1);
  const Json& rows = page.manifest["prediction"]["top"];
  ASSERT_EQ(std::ssize(rows), top);
  for (int64_t i = 0; i < top; ++i) {
    const Json& row = rows[static_cast<size_t>(i)];
    EXPECT_EQ(classes.data<float>()[last * top + i], row["class"].get<float>());
    EXPECT_NEAR(static_cast<double>(probability.data<float>()[last * top + i]), row["probability"].get<double>(), 1e-5);
  }
}

TEST(LearningPage, SaysHowMuchTheLogitFallsWithoutAHead) {
  const PageOfModel page(fixture("models/timm_distilled"), {.target = "2"});
  const Tensor falls = page.array("explain.ablation.heads");
  const models::VisionTransformer model = models::build_model(page.opened);
  const Tensor changes = models::head_ablation(model, page.model.preprocess(std::array{image::ImageView(page.photo)}));
  ASSERT_EQ(falls.numel() * changes.size(3), changes.numel());
  for (int64_t i = 0; i < falls.numel(); ++i)
    EXPECT_NEAR(falls.data<float>()[i], -changes.data<float>()[i * changes.size(3) + 2], 1e-5F) << i;
}

// CKA of a model with itself is that between its blocks; each block is as similar to itself as can be.
TEST(LearningPage, ComparesTheBlocksOfTwoModels) {
  const PageOfModel page(fixture("models/timm_distilled"));
  testing::ReadPage both;
  both.read(explain(page.model, page.opened,
                    {.photo = page.photo, .compared = ComparedModel{page.model, page.opened, "the same"}}, {}));
  const Tensor similar = page.array("explain.cka"), between = both.array("explain.compared.cka");
  EXPECT_TRUE(testing::close(between, similar, 1e-5));
  for (int64_t block = 0; block < similar.size(0); ++block)
    EXPECT_NEAR(similar.data<float>()[block * (similar.size(0) + 1)], 1, 1e-6);
  EXPECT_TRUE(testing::close(both.array("explain.compared.attention.first"),
                             both.array("explain.compared.attention.second"), 0));
  EXPECT_EQ(both.manifest["compared"]["name"], "the same");
  const PageOfModel other(fixture("models/timm_token"));
  both.read(explain(page.model, page.opened,
                    {.photo = page.photo, .compared = ComparedModel{other.model, other.opened, "another"}}, {}));
  for (const auto& [name, model] : {std::pair{"first", &page.model}, {"second", &other.model}})
    EXPECT_TRUE(testing::close(both.array(str("explain.compared.attention.", name)),
                               model->attention(image::ImageView(page.photo)), 1e-6))
        << name;
}

TEST(LearningPage, SaysWhatItLeavesOut) {
  const PageOfModel small(fixture("models/timm_non_square"), {.detail = Detail::small});
  const int64_t tokens = small.manifest["model"]["tokens"].get<int64_t>();
  if (tokens > 17) {
    ASSERT_FALSE(small.page.left_out.empty());
    EXPECT_EQ(small.page.left_out[0].first, "blocks.*.mlp.act");
    EXPECT_EQ(small.manifest["tensors"]["blocks.0.mlp.act"]["rows"].size(), 17U);
  }
  const PageOfModel full(fixture("models/timm_non_square"), {.detail = Detail::full});
  EXPECT_TRUE(full.page.left_out.empty());
}

// Large models keep fewer tokens and blocks, and say the errors of what they keep.
TEST(LearningPage, KeepsLessOfALargeModel) {
  const models::VisionTransformerConfig config{
      .img_size = {40, 40}, .patch_size = {4, 4}, .num_classes = 5, .embed_dim = 24, .depth = 5, .num_heads = 3};
  RandomParams random(0, DType::f32, Device::cpu);
  const models::VisionTransformer model(config, ParamSource(random));
  const Forward forward = run_forward(model, Tensor::randn({1, 3, 40, 40}, 3));
  size_t before = std::numeric_limits<size_t>::max();
  for (const Storage& storage : storages(Detail::standard)) {
    Arrays arrays;
    const Json derived = add_forward(model, forward, storage, std::vector<ChannelScale>(3, {1, 0}), arrays);
    EXPECT_LE(arrays.raw_bytes(), before);
    before = arrays.raw_bytes();
    for (int64_t block = 0; block < config.depth; ++block) {
      const bool has_attention = (config.depth - 1 - block) % storage.attention_step == 0;
      EXPECT_EQ(arrays.tensors().contains(in_block(block, "attn.k")), has_attention);
      ASSERT_EQ(derived.contains(in_block(block, "attn.weights")), has_attention);
      if (!has_attention) continue;
      EXPECT_EQ(arrays.tensors()[in_block(block, "attn.q")].contains("rows"), storage.few_queries);
      EXPECT_LT(derived[in_block(block, "attn.scores")]["max_error"].get<double>(), 0.05) << block;
      EXPECT_EQ(derived.contains(in_block(block, "attn.context")), storage.stream_tokens == 0);
    }
  }
}

TEST(LearningPage, HasTheSameTextsInAllLanguages) {
  const PageOfModel page(fixture("models/timm_token"));
  const Json texts = Json::parse(page.element("texts"));
  for (const auto& [key, text] : texts.at("en").items()) {
    ASSERT_TRUE(texts.at("zh").contains(key)) << key;
    EXPECT_NE(texts["zh"][key], "") << key;
  }
  EXPECT_EQ(texts["en"].size(), texts["zh"].size());
}

}  // namespace
}  // namespace vitrail::explain
