// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/evaluation_internal.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/train/training_fixture.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/run/loader_setup_internal.h"

namespace vitrail::train {
namespace {

const std::vector<std::string> kColorClasses{"blue", "green", "red"};

TEST(KeepWorst, AreThoseOfMinLabelProbability) {
  std::vector<Misclassification> worst;
  for (int64_t i = 0; i < 60; ++i) worst.push_back({.sample = i, .label_probability = static_cast<double>(i * 7 % 30)});
  std::vector<Misclassification> expected = worst;
  std::ranges::stable_sort(expected, {}, &Misclassification::label_probability);
  keep_worst(worst);
  ASSERT_EQ(worst.size(), kMaxMisclassifications);
  for (size_t i = 0; i < worst.size(); ++i) EXPECT_EQ(worst[i].sample, expected[i].sample) << i;
  worst.resize(2);
  keep_worst(worst);
  EXPECT_EQ(worst.size(), 2u);
}

// The logits of each image, by a model with random weights.
struct Evaluated {
  ClassEvaluation result;
  std::vector<std::vector<double>> logits;
  std::vector<int64_t> labels;
  std::vector<std::pair<int64_t, int64_t>> progress;
};

Evaluated evaluated() {
  const fs::path images = make_images(4, 5);
  const Recipe recipe =
      parse_recipe(tiny_recipe(images), "r.json",
                   {"batch_size=4", "data.val=\"\"", "data.holdout=3", "data.test=" + images.string()});
  const RunData data = open_data(recipe.data, 3);
  PreparedModel made = prepare_model(recipe.model, kColorClasses, 2);
  const Tensor head = made.model.parameter("head.weight");
  for (int64_t i = 0; i < head.numel(); ++i) head.data<float>()[i] *= 40;  // confident and often wrong
  image::EvalTransform transform;
  transform.size = {8, 8};
  transform.crop_pct = 1;
  const auto training = training_options(recipe, data, transform, 3, 2, ProcessGroup(nullptr));
  data::Loader loader = evaluation_loader(data.test, training);
  Evaluated evaluated;
  evaluated.result = evaluate(made.model, loader, 3,
                              [&](int64_t step, int64_t steps) { evaluated.progress.emplace_back(step, steps); });
  const autograd::NoGrad no_grad;
  loader.start(0);
  while (const auto batch = loader.next()) {
    const Tensor logits = made.model.forward(batch->images).contiguous();
    for (int64_t i = 0; i < logits.size(0); ++i) {
      evaluated.logits.emplace_back(logits.data<float>() + 3 * i, logits.data<float>() + 3 * i + 3);
      evaluated.labels.push_back(batch->labels.data<int64_t>()[i]);
    }
  }
  return evaluated;
}

TEST(Evaluate, EqualsTheDefinitionsOfItsMetrics) {
  const Evaluated all = evaluated();
  ASSERT_EQ(all.labels.size(), 15u);
  double loss = 0;
  int64_t right = 0;
  std::vector<std::vector<int64_t>> confusion(3, std::vector<int64_t>(3));
  std::vector<double> probabilities;  // labels of wrong images
  for (size_t i = 0; i < 15; ++i) {
    const auto label = static_cast<size_t>(all.labels[i]);
    const auto best = static_cast<size_t>(std::ranges::max_element(all.logits[i]) - all.logits[i].begin());
    double sum = 0;
    for (const double logit : all.logits[i]) sum += std::exp(logit);
    const double probability = std::exp(all.logits[i][label]) / sum;
    loss -= std::log(probability) / 15;
    right += best == label;
    ++confusion[label][best];
    if (best != label) probabilities.push_back(probability);
  }
  std::ranges::sort(probabilities);
  EXPECT_NEAR(all.result.loss, loss, 1e-5);
  EXPECT_EQ(all.result.images, 15);
  EXPECT_EQ(all.result.top1, static_cast<double>(right) / 15);
  EXPECT_EQ(all.result.top5, 1);  // there are three classes
  EXPECT_EQ(all.result.confusion, confusion);
  ASSERT_FALSE(probabilities.empty());
  ASSERT_EQ(all.result.worst.size(), probabilities.size());
  for (size_t i = 0; i < probabilities.size(); ++i) {
    EXPECT_NEAR(all.result.worst[i].label_probability, probabilities[i], 1e-5) << i;
    EXPECT_GE(all.result.worst[i].prediction_probability, all.result.worst[i].label_probability);
    EXPECT_NE(all.result.worst[i].prediction, all.result.worst[i].label);
  }
}

// A head without weights gives its bias for each image.
ClassEvaluation evaluated_with(const std::vector<float>& logits) {
  const fs::path images = make_images(6, 2);
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"augment.mixup=0"});
  std::vector<std::string> classes = kColorClasses;
  for (size_t c = 3; c < logits.size(); ++c) classes.push_back("x" + std::to_string(c));
  PreparedModel made = prepare_model(recipe.model, classes, 2);
  const Tensor head = made.model.parameter("head.weight"), bias = made.model.parameter("head.bias");
  std::fill_n(head.data<float>(), head.numel(), 0.0F);
  std::ranges::copy(logits, bias.data<float>());
  const RunData data = open_data(recipe.data, 3);
  image::EvalTransform transform;
  transform.size = {8, 8};
  const auto training = training_options(recipe, data, transform, 3, 2, ProcessGroup(nullptr));
  data::Loader loader = evaluation_loader(data.test, training);
  return evaluate(made.model, loader, static_cast<int64_t>(logits.size()), {});
}

TEST(Evaluate, CountsTheFiveClassesOfTheHighestLogits) {
  const double third = 1.0 / 3;
  ClassEvaluation result = evaluated_with({0, 1, 2, 3, 4, 5});  // blue is the sixth
  EXPECT_EQ(result.images, 6);
  EXPECT_EQ(result.top1, 0);
  EXPECT_NEAR(result.top5, 2 * third, 1e-12);
  EXPECT_EQ(result.confusion[0], (std::vector<int64_t>{0, 0, 0, 0, 0, 2}));
  result = evaluated_with({9, 8, 0, 3, 4, 5});  // red is the sixth
  EXPECT_NEAR(result.top1, third, 1e-12);
  EXPECT_NEAR(result.top5, 2 * third, 1e-12);
}

TEST(Evaluate, OfEqualLogitsTheFirstClassWins) {
  const ClassEvaluation result = evaluated_with({1, 1, 1});
  EXPECT_NEAR(result.top1, 1.0 / 3, 1e-12);
  for (size_t label = 0; label < 3; ++label) EXPECT_EQ(result.confusion[label], (std::vector<int64_t>{2, 0, 0}));
  ASSERT_EQ(result.worst.size(), 4u);
  for (const Misclassification& wrong : result.worst) {
    EXPECT_NE(wrong.label, 0);
    EXPECT_NEAR(wrong.label_probability, 1.0 / 3, 1e-6);
  }
  EXPECT_NEAR(evaluated_with({0, 0, 0, 0, 0, 0}).top5, 1, 1e-12) << "the labels are the first three of six";
}

TEST(Evaluate, TellsItsProgressAfterEachBatch) {
  const std::vector<std::pair<int64_t, int64_t>> expected{{1, 4}, {2, 4}, {3, 4}, {4, 4}};
  EXPECT_EQ(evaluated().progress, expected);
}

TEST(Evaluate, LeavesOutAndCountsWhatCannotBeRead) {
  const fs::path images = make_images(6, 3);
  write_file(images / "test/green/01.png", "none");
  write_file(images / "test/red/02.png", "none");
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"data.unreadable=skip", "batch_size=2"});
  PreparedModel made = prepare_model(recipe.model, kColorClasses, 2);
  made.model.train();
  const RunData data = open_sets(recipe.data, 3);
  image::EvalTransform transform;
  transform.size = {8, 8};
  data::Loader loader =
      evaluation_loader(data.test, training_options(recipe, data, transform, 3, 2, ProcessGroup(nullptr)));
  const ClassEvaluation result = evaluate(made.model, loader, 3);
  EXPECT_EQ(result.images, 7);
  EXPECT_EQ(result.skipped, 2);
  int64_t counted = 0;
  for (const auto& row : result.confusion) counted += std::accumulate(row.begin(), row.end(), int64_t{0});
  EXPECT_EQ(counted, 7);
  const ClassEvaluation again = evaluate(made.model, loader, 3);
  EXPECT_EQ(again.loss, result.loss) << "in the mode of evaluation, whatever the mode was before";
  for (const char* color : {"blue", "green", "red"}) {
    for (const char* name : {"00.png", "01.png", "02.png"}) write_file(images / "test" / color / name, "none");
  }
  const ClassEvaluation none = evaluate(made.model, loader, 3);
  EXPECT_EQ(none.images, 0);
  EXPECT_EQ(none.skipped, 9);
  EXPECT_EQ(none.loss + none.top1 + none.top5, 0);
}

}  // namespace
}  // namespace vitrail::train
