// SPDX-License-Identifier: Apache-2.0
// Training images are normalised as those that the checkpoint was trained on.
#include <gtest/gtest.h>

#include "vitrail/train/objectives/classification/model_setup_internal.h"

namespace vitrail::train {
namespace {

using Numbers = std::vector<double>;

models::ModelConfig with_factor(double factor, const Numbers& mean, const Numbers& std) {
  models::ModelConfig config;
  config.preprocessing.rule = models::ResizeRule::huggingface;
  config.preprocessing.rescale_factor = factor;
  config.preprocessing.mean = mean;
  config.preprocessing.std = std;
  return config;
}

void expect_statistics(const models::Preprocessing& got, const Numbers& mean, const Numbers& std) {
  ASSERT_EQ(got.mean->size(), mean.size());
  ASSERT_EQ(got.std->size(), std.size());
  for (size_t i = 0; i < mean.size(); ++i) EXPECT_DOUBLE_EQ((*got.mean)[i], mean[i]);
  for (size_t i = 0; i < std.size(); ++i) EXPECT_DOUBLE_EQ((*got.std)[i], std[i]);
  EXPECT_EQ(got.rule, models::ResizeRule::timm);
}

TEST(SourcePreprocessing, TheRescaleFactorBelongsToTheStatistics) {
  expect_statistics(preprocessing_of({}, with_factor(1 / 127.5, {1, 1, 1}, {1, 1, 1})), {0.5, 0.5, 0.5},
                    {0.5, 0.5, 0.5});
  expect_statistics(preprocessing_of({}, with_factor(1, {51, 102, 127.5}, {51, 51, 255})), {0.2, 0.4, 0.5},
                    {0.2, 0.2, 1});
  expect_statistics(preprocessing_of({}, with_factor(1, {0, 0, 0}, {1, 1, 1})), {0, 0, 0}, Numbers(3, 1.0 / 255));
  const Numbers mean{0.485, 0.456, 0.406}, std{0.229, 0.224, 0.225};
  const models::Preprocessing usual = preprocessing_of({}, with_factor(1.0 / 255, mean, std));
  EXPECT_EQ(usual.mean, mean);
  EXPECT_EQ(usual.std, std);
}

TEST(SourcePreprocessing, TheRecipesStatisticsAreOfPixelsTo1) {
  DataRecipe recipe;
  recipe.mean = {0.25};
  expect_statistics(preprocessing_of(recipe, with_factor(1 / 127.5, {1, 1, 1}, {1, 1, 1})), {0.25}, {0.5, 0.5, 0.5});
}

}  // namespace
}  // namespace vitrail::train
