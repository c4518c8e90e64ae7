// SPDX-License-Identifier: Apache-2.0
// A model for regression is no start of the training of a classifier: its outputs are not those of classes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/read_file.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"

namespace vitrail::train {
namespace {

TEST(RegressionStart, IsAnError) {
  const std::filesystem::path folder = testing::scratch_folder() / "model";
  std::filesystem::copy(testing::fixture("models/timm_token"), folder);
  std::string config = read_text_file(folder / "config.json");
  config.insert(config.find('{') + 1, "\"problem_type\": \"regression\",");
  std::ofstream(folder / "config.json", std::ios::trunc) << config;
  ModelRecipe recipe;
  recipe.init = folder.string();
  const std::string error = testing::error_of([&] { prepare_model(recipe, {"a", "b"}, 1); });
  EXPECT_ERROR(error, folder.string(), "problem_type \"regression\"");
}

}  // namespace
}  // namespace vitrail::train
