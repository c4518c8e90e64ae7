// SPDX-License-Identifier: Apache-2.0
// Hiera as a classifier and encoder against transformers and timm: fixtures of tools/golden/hiera.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/read_file.h"
#include "vitrail/tasks/images/hiera_model.h"
#include "vitrail/tasks/run.h"

namespace vitrail::tasks {
namespace {

namespace fs = std::filesystem;
using testing::error_of;

fs::path hiera_folder(const std::string& name) {
  return testing::fixture("hiera/" + name + "/config.json").parent_path();
}

struct HieraFixture {
  explicit HieraFixture(const std::string& name, const OpenOptions& options = {})
      : golden(testing::read_golden(hiera_folder(name) / "golden.safetensors")),
        model(open_model(hiera_folder(name), options)) {
    const Tensor pixels = golden["image"].contiguous();
    photo = {pixels.size(1), pixels.size(0), 3,
             std::vector<uint8_t>(pixels.data<uint8_t>(), pixels.data<uint8_t>() + pixels.numel())};
  }

  Tensor inputs() const { return model->input_of(photo).unsqueeze(0); }
  Tensor result(infer::Output output) const { return model->run(inputs(), {.output = output})[0].select(0, 0); }

  testing::Golden golden;
  std::unique_ptr<LoadedModel> model;
  image::Image photo;
};

// A folder with the fixture's files and another text in its config.json or preprocessor_config.json.
fs::path changed_hiera(const std::string& name, const std::string& file, const std::string& from,
                       const std::string& to) {
  const fs::path folder = testing::scratch_folder() / "changed";
  fs::remove_all(folder);
  fs::copy(hiera_folder(name), folder);
  std::string text = read_regular_text_file(folder / file);
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  std::ofstream(folder / file) << text.replace(at, from.size(), to);
  return folder;
}

class HieraParity : public ::testing::TestWithParam<const char*> {};

// Both are computed in fp32 over some ten layers: see testing::kSamTolerance.
TEST_P(HieraParity, LogitsAndFeaturesEqualTheReference) {
  const HieraFixture fixture(GetParam());
  const auto close = [&](const Tensor& got, const Tensor& want) {
    double largest = 0;
    for (int64_t i = 0; i < want.numel(); ++i) largest = std::max(largest, std::abs(double{want.data<float>()[i]}));
    return testing::close(got, want, 1e-4 * largest);
  };
  for (const auto& [name, output] :
       {std::pair("logits", infer::Output::logits), {"features", infer::Output::features}}) {
    if (!fixture.golden.has(name)) continue;
    EXPECT_TRUE(close(fixture.result(output), fixture.golden[name])) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, HieraParity,
                         ::testing::Values("transformers", "transformers_resized", "transformers_encoder", "timm"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Hiera, RunsTheTasksClassifyAndEmbed) {
  const HieraFixture fixture("transformers");
  const Tensor logits = fixture.golden["logits"], features = fixture.golden["features"];
  const auto run = [&](const std::string& task, const Parameters& given) {
    RequestOptions options;
    options.add(given);
    const auto request = find_task(task, *fixture.model)->request(*fixture.model, options, {.model = "m"});
    options.require_all_taken();
    std::vector<Item> items(1);
    items[0].name = "photo";
    items[0].photo = fixture.photo;
    tasks::run(*fixture.model, *request, items);
    return nlohmann::json::parse(request->json(items[0]));
  };
  const nlohmann::json classes = run("classify", {{"top", "2"}});
  const int64_t best = std::max_element(logits.data<float>(), logits.data<float>() + 5) - logits.data<float>();
  ASSERT_EQ(classes["predictions"].size(), 2u);
  EXPECT_EQ(classes["predictions"][0]["index"], best);
  EXPECT_EQ(classes["predictions"][0]["label"], "animal " + std::to_string(best));
  const nlohmann::json embedding = run("embed", {{"normalize", "true"}});
  double squares = 0;
  for (int64_t i = 0; i < 32; ++i) squares += double{features.data<float>()[i]} * features.data<float>()[i];
  ASSERT_EQ(embedding["embedding"].size(), 32u);
  for (size_t i = 0; i < 32; ++i)
    EXPECT_NEAR(embedding["embedding"][i], features.data<float>()[i] / std::sqrt(squares), 1e-5) << i;
}

TEST(Hiera, AnEncoderAloneDoesNotClassify) {
  const HieraFixture fixture("transformers_encoder");
  EXPECT_ERROR(error_of([&] { fixture.result(infer::Output::logits); }), "model", "a model without a head (use embed)");
  const auto* const task = find_task("classify", *fixture.model);
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(fixture.model->tensors()->outputs().size(), 1u);
}

TEST(Hiera, HasPooledFeaturesAlone) {
  const HieraFixture fixture("timm");
  const auto error = [&](const infer::FeatureOptions& features) {
    return error_of(
        [&] { fixture.model->run(fixture.inputs(), {.output = infer::Output::features, .features = features}); });
  };
  for (const infer::FeatureOptions& features :
       {infer::FeatureOptions{.tokens = infer::Tokens::patch}, infer::FeatureOptions{.layers = {0}},
        infer::FeatureOptions{.final_norm = false}})
    EXPECT_ERROR(error(features), "features", "others");
  EXPECT_NO_THROW(
      fixture.model->run(fixture.inputs(), {.output = infer::Output::features, .features = {.l2_normalize = true}}));
}

TEST(Hiera, RunsInLowerPrecisions) {
  const Tensor exact = HieraFixture("timm").result(infer::Output::features);
  for (const auto precision : {kernels::Precision::half, kernels::Precision::int8}) {
    const HieraFixture fixture("timm", {.model = {.precision = precision}});
    const double error = testing::relative_error(fixture.result(infer::Output::features), exact);
    EXPECT_GT(error, 0);
    EXPECT_LT(error, 0.1) << kernels::name_of(precision);
  }
}

TEST(Hiera, RefusesConfigurationsThatItCannotCompute) {
  const auto error = [](const char* name, const char* file, const std::string& from, const std::string& to) {
    const fs::path folder = changed_hiera(name, file, from, to);
    return error_of([&] { open_model(folder); }).substr(folder.string().size() + 1);
  };
  const auto of_config = [&](const std::string& from, const std::string& to) {
    return error("transformers", "config.json", from, to);
  };
  EXPECT_ERROR(of_config("\"embed_dim_multiplier\": 2.0", "\"embed_dim_multiplier\": 3.0"),
               "config.json: embed_dim_multiplier", "3.0");
  EXPECT_ERROR(of_config("[true, true, false, false]", "[true, false, true, false]"), "config.json", "in a later one");
  EXPECT_ERROR(of_config("[true, true, false, false]", "[1, 0, 0, 0]"), "config.json: masked_unit_attention",
               "[1,0,0,0]");
  EXPECT_ERROR(of_config("\"masked_unit_size\": [8, 8]", "\"masked_unit_size\": [8, 4]"),
               "config.json: masked_unit_size", "8×4");
  EXPECT_ERROR(of_config("\"masked_unit_size\": [8, 8]", "\"masked_unit_size\": [4, 4]"), "config.json", "4");
  EXPECT_ERROR(of_config("\"depths\": [1, 2, 2, 1]", "\"depths\": [1, 2, 2]"), "config.json",
               "3 depths, 4 heads, 4 kinds of attention, pooling in 3, width 4, MLPs of 2 times the width");
  EXPECT_ERROR(error("timm", "config.json", "hiera_tiny_224", "hiera_mini_224"), "config.json: architecture",
               "\"hiera_mini_224\"");
  EXPECT_ERROR(error("timm", "config.json", "\"embed_dim\"", "\"abs_win_pos_embed\": true, \"embed_dim\""),
               "config.json: model_args: abs_win_pos_embed", "true");
  const fs::path folder = changed_hiera("transformers", "preprocessor_config.json", "\"height\": 64", "\"height\": 72");
  EXPECT_ERROR(error_of([&] { open_model(folder); }), folder.string(), "64×72");
}

}  // namespace
}  // namespace vitrail::tasks
