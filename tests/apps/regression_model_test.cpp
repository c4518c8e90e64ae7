// SPDX-License-Identifier: Apache-2.0
// Models whose outputs are values: "problem_type": "regression".
#include <algorithm>

#include "tests/apps/cli_fixture.h"
#include "vitrail/base/npy.h"

namespace vitrail::testing {
namespace {

std::filesystem::path regression_model() {
  return with_config("timm_token", [](nlohmann::json& config) { config["problem_type"] = "regression"; });
}

TEST(RegressionModel, TheOutputsAreTheValuesAlsoAfterConversion) {
  const auto images = image_folder(1), model = regression_model(), copy = scratch_folder() / "copy";
  ASSERT_EQ(run_program({"convert", model.string(), "-o", copy.string()}).status, 0);
  for (const auto& path : {model, copy}) {
    const std::string logits = (images / "l.npy").string();
    const ProgramResult result = run_program(
        {"classify", "-m", path.string(), images.string(), "--logits", logits, "--format", "json", "--top", "10"});
    ASSERT_EQ(result.status, 0) << result.err;
    const auto object = json_lines(result.out).at(0);
    EXPECT_EQ(object["activation"], "none");
    ASSERT_EQ(object["predictions"].size(), 10u);
    const std::vector<float> values = read_npy(logits).f32;
    for (const auto& p : object["predictions"])
      EXPECT_EQ(p["probability"].get<float>(), values[p["index"].get<size_t>()]);
  }
}

TEST(RegressionModel, TheTextHasValuesInsteadOfPercentages) {
  const auto images = image_folder(1), model = regression_model();
  const std::string logits = (images / "l.npy").string();
  const ProgramResult result =
      run_program({"classify", "-m", model.string(), images.string(), "--logits", logits, "--top", "1"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out.find('%'), std::string::npos) << result.out;
  const std::vector<float> values = read_npy(logits).f32;
  EXPECT_NE(result.out.find(formatted("%.6g  ", *std::max_element(values.begin(), values.end()))), std::string::npos)
      << result.out;
}

TEST(RegressionModel, ThereAreNoRightClassesToCount) {
  const ProgramResult result = run_program({"eval", "-m", regression_model().string(), image_folder(1).string()});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("expected a model for classification, got problem_type \"regression\""), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace vitrail::testing
