// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/class_weights_internal.h"

#include "tests/support/errors.h"
#include "tests/train/training_fixture.h"

namespace vitrail::train {
namespace {

RunData data_without_holdout(const fs::path& images) {
  DataRecipe recipe;
  recipe.train = images.string();
  recipe.holdout = 0;
  return open_sets(recipe, 3);
}

std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

// scikit-learn: compute_class_weight("balanced", classes=[0, 1, 2], y=[0] * 20 + [1] * 20 + [2] * 5)
TEST(ClassWeights, OfInverseFrequencyAreScikitLearns) {
  const fs::path images = make_images(20);
  for (int i = 5; i < 20; ++i) fs::remove(images / "train/red" / ((i < 10 ? "0" : "") + std::to_string(i) + ".png"));
  const RunData data = data_without_holdout(images);
  EXPECT_EQ(class_counts(data.train, 3), (std::vector<int64_t>{20, 20, 5}));
  const Tensor weights = class_weights({.class_weighting = "inverse_frequency"}, data);
  EXPECT_EQ(values_of(weights), (std::vector<float>{0.75, 0.75, 3}));
}

TEST(ClassCounts, OfManyClassesAreTheSmallestAndTheLargest) {
  RunData data = data_without_holdout(make_images(3));
  EXPECT_EQ(class_counts_text(data), "training images of each class: blue: 3, green: 3, red: 3");
  data.train.samples = {0, 1, 3, 6, 7, 8};
  EXPECT_EQ(class_counts_text(data), "training images of each class: blue: 2, green: 1, red: 3");
  data.train.samples = {0, 0, 0, 3, 6, 6};
  for (int i = 3; i < 20; ++i) data.classes.push_back("x" + std::to_string(i));
  const std::string twenty = class_counts_text(data);
  EXPECT_TRUE(contains(twenty, "blue: 3, green: 1, red: 2, x3: 0, ") && contains(twenty, ", x19: 0")) << twenty;
  data.classes.resize(3);
  for (int i = 3; i <= 20; ++i) data.classes.push_back("x" + std::to_string(i));  // 21 classes, 18 of them empty
  EXPECT_EQ(class_counts_text(data), "training images of each class: 0 (x3) to 3 (blue)");
}

TEST(ClassWeights, MayBeGivenForEachClass) {
  const RunData data = data_without_holdout(make_images(2));
  EXPECT_EQ(values_of(class_weights({.class_weights = {1, 2, 0.5}}, data)), (std::vector<float>{1, 2, 0.5}));
  EXPECT_FALSE(class_weights({}, data).defined());
  EXPECT_ERROR(error_of([&] { class_weights({.class_weights = {1, 2}}, data); }), "loss.class_weights", "2");
}

TEST(ClassWeights, AreRefusedWhereTheyHaveNoMeaning) {
  const std::string recipe = tiny_recipe("x");
  const auto refusal = [&](const std::vector<std::string>& settings) {
    return error_of([&] { parse_recipe(recipe, "r.json", settings); });
  };
  const std::string weights = "loss.class_weights=[1,2,3]", frequency = "loss.class_weighting=inverse_frequency";
  EXPECT_NO_THROW(parse_recipe(recipe, "r.json", {weights}));
  EXPECT_TRUE(contains(refusal({weights, frequency}), "loss.class_weighting: expected \"none\" together with"));
  EXPECT_TRUE(contains(refusal({weights, "loss.name=bce"}), "loss.class_weights: expected loss.name"));
  EXPECT_TRUE(contains(refusal({frequency, "loss.name=bce"}), "loss.class_weighting: expected loss.name"));
  EXPECT_TRUE(contains(refusal({frequency, "data.balance=true"}), "expected data.balance false"));
  EXPECT_TRUE(contains(refusal({frequency, R"(loss.distillation={"teacher":"t"})"}), "expected no distillation"));
  EXPECT_TRUE(
      contains(refusal({frequency, "objective=probe", "model.init=x", "model.positions=drawn"}), "for a probe"));
  EXPECT_TRUE(contains(refusal({"loss.class_weights=[1,0,3]"}), "loss.class_weights"));
}

// A class without images has no weight and does not change those of the others.
TEST(ClassWeights, AnAbsentClassDoesNotCount) {
  RunData data = data_without_holdout(make_images(4));
  data.train.samples = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(values_of(class_weights({.class_weighting = "inverse_frequency"}, data)),
            (std::vector<float>{0.75, 1.5, 0}));
}

}  // namespace
}  // namespace vitrail::train
