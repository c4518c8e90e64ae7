// SPDX-License-Identifier: Apache-2.0
// Training on images with several labels.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/train/training_fixture.h"
#include "vitrail/models/load.h"
#include "vitrail/train/objectives/classification/evaluation_internal.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/objectives/classification/multi_label_internal.h"
#include "vitrail/train/recipe/default_recipe.h"
#include "vitrail/train/run/loader_setup_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {
namespace {

// Images whose red, green and blue are each bright or not; bright colours are the labels.  Image 0 has none.
fs::path label_list(int count = 64) {
  const fs::path root = testing::scratch_folder();
  std::ofstream list(root / "list.csv");
  list << "file,labels\n";
  for (int i = 0; i < count; ++i) {
    image::Image image = image::make_image(8, 8, 3);
    RandomStream random(random_key("several", static_cast<uint64_t>(i)));
    for (size_t p = 0; p < image.pixels.size(); ++p)
      image.pixels[p] = static_cast<uint8_t>(random.uniform() * 120 + ((i >> (p % 3) & 1) != 0 ? 120 : 0));
    const std::string name = std::to_string(i) + ".png";
    image::write_png(root / name, image);
    std::string labels;
    for (const auto& [bit, color] : {std::pair{0, "red"}, {1, "green"}, {2, "blue"}})
      if ((i >> bit & 1) != 0) labels += (labels.empty() ? "" : "|") + std::string(color);
    list << name << "," << labels << "\n";
  }
  return root / "list.csv";
}

std::string recipe_text(const fs::path& list) {
  return R"({"model": {"img_size": 8, "patch_size": 4, "embed_dim": 16, "depth": 1, "num_heads": 2},
             "data": {"train": ")" +
         list.string() + R"(", "test": ")" + list.string() + R"(", "holdout": 16, "workers": 1}, "epochs": 30,
             "batch_size": 8, "optimizer": {"lr": 1e-2}, "loss": "bce", "log_every": 1})";
}

TEST(MultiLabel, TrainingLearnsSeveralLabelsAndWritesASigmoidModel) {
  const fs::path run = testing::scratch_folder() / "run";
  std::vector<EpochResult> epochs;
  const TrainerCallbacks callbacks{.epoch = [&](const EpochResult& result) { epochs.push_back(result); }};
  const TrainingResult result =
      train(parse_recipe(recipe_text(label_list()), "r.json"), {.folder = run, .threads = 1}, callbacks);
  EXPECT_EQ(result.metrics[1].name, "f1");
  EXPECT_GT(result.best.value().value, 0.95);  // mean average precision
  EXPECT_GT(result.test->scores[0].value, 0.95);
  EXPECT_GT(result.test->scores[1].value, 0.9);  // F1
  ASSERT_EQ(epochs.size(), 30u);
  EXPECT_TRUE(epochs.back().train.scores.empty() && epochs.back().validation->loss < epochs.front().validation->loss);

  const models::OpenedModel model = models::open_model(run / "model");
  EXPECT_EQ(model.config.problem_type, models::ProblemType::multi_label);
  EXPECT_EQ(model.config.labels, (std::vector<std::string>{"blue", "green", "red"}));
  const auto summary = nlohmann::json::parse(read_text(run / "summary.json"));
  EXPECT_EQ(summary["held_out"]["map"], result.best.value().value);
  EXPECT_EQ(summary["test"]["f1"], result.test->scores[1].value);
  EXPECT_FALSE(summary["test"].contains("top1"));
  EXPECT_TRUE(contains(read_text(run / "metrics.csv"), "event,step,epoch,loss,map,f1,learning_rate"));
  const std::string report = read_text(run / "report.html"), card = read_text(run / "model/README.md");
  EXPECT_TRUE(contains(report, "mean average precision on the test images, 64 images"));
  EXPECT_TRUE(contains(report, "<th>average precision</th>"));
  EXPECT_FALSE(contains(report, "Confusion") || contains(report, "Top-1"));
  EXPECT_TRUE(contains(card, "Test images: mean average precision ")) << card;
}

TEST(MultiLabel, TheMetricsOfARunAreThoseOfItsResume) {
  const fs::path list = label_list(), whole = testing::scratch_folder() / "run",
                 halves = testing::scratch_folder() / "r";
  const Recipe recipe = parse_recipe(recipe_text(list), "r.json", {"epochs=4"});
  const TrainingResult expected = train(recipe, {.folder = whole, .threads = 1});
  int epochs = 0;
  TrainerCallbacks stop{.epoch = [&](const EpochResult&) { ++epochs; }, .stop = [&] { return epochs == 2; }};
  EXPECT_TRUE(train(recipe, {.folder = halves, .threads = 1}, stop).stopped);
  const TrainingResult resumed = train(recipe, {.folder = halves, .resume = true, .threads = 1});
  EXPECT_EQ(resumed.best->value, expected.best->value);
  EXPECT_EQ(resumed.test->scores[1].value, expected.test->scores[1].value);
}

// Everything that takes one label per image is refused, all at once, before a file is written.
TEST(MultiLabel, SettingsForOneLabelAreRefused) {
  const fs::path run = testing::scratch_folder() / "run";
  const std::string text = recipe_text(label_list(8));
  const auto refusal = [&](const std::vector<std::string>& settings) {
    return error_of([&] { train(parse_recipe(text, "r.json", settings), {.folder = run, .threads = 1}); });
  };
  const std::string message = refusal({"data.holdout=0", "loss.name=cross_entropy", "loss.label_smoothing=0.1",
                                       "data.balance=true", "augment.mixup=0.5"});
  for (const char* part : {"several labels", "loss.name: expected \"bce\"", "loss.label_smoothing: expected 0",
                           "data.balance: expected false", "mixup"})
    EXPECT_TRUE(contains(message, part)) << message;
  const std::string threshold = refusal({"data.holdout=0", "loss.bce_threshold=0.5"});
  EXPECT_TRUE(contains(threshold, "loss.bce_threshold: expected null")) << threshold;
  EXPECT_FALSE(fs::exists(run));
}

TEST(MultiLabel, AProbeIsRefused) {
  const Recipe probe =
      parse_recipe(recipe_text(label_list(32)), "r.json",
                   {"objective=probe", "model={\"init\": \"" + testing::fixture("models/timm_token").string() + "\"}"});
  const fs::path run = testing::scratch_folder() / "run";
  const std::string message = error_of([&] { train(probe, {.folder = run, .threads = 1}); });
  EXPECT_TRUE(contains(message, "objective: expected \"classify\", got \"probe\"")) << message;
  EXPECT_FALSE(fs::exists(run));
}

TEST(MultiLabel, TestImagesMustHaveSeveralLabelsToo) {
  const std::string text = recipe_text(label_list(16));
  const std::string folders = (make_images(2) / "test").string();
  EXPECT_TRUE(contains(error_of([&] {
                         train(parse_recipe(text, "r.json", {"data.test=" + folders, "data.test_split=."}),
                               {.folder = testing::scratch_folder() / "run"});
                       }),
                       "expected a dataset of several labels per image"));
}

TEST(MultiLabel, TheDefaultRecipeChoosesBinaryCrossEntropy) {
  const DefaultRecipe chosen = default_recipe(
      {.data = label_list().string(), .model = testing::fixture("models/timm_token").string(), .epochs = 1});
  EXPECT_EQ(chosen.recipe.loss.name, "bce");
  EXPECT_EQ(chosen.recipe.loss.label_smoothing, 0);
  EXPECT_FALSE(chosen.recipe.data.balance);
  const fs::path run = testing::scratch_folder() / "run";
  EXPECT_GT(train(chosen.recipe, {.folder = run, .threads = 1}).best.value().value, 0);
}

// Single labels of such unequal classes would be balanced.
TEST(MultiLabel, TheDefaultRecipeBalancesNoSingleLabels) {
  const fs::path list = label_list(40);
  std::ofstream(list) << "file,labels\n";
  for (int i = 0; i < 40; ++i)
    std::ofstream(list, std::ios::app) << i << ".png," << (i % 4 == 0 ? "green|red\n" : "red\n");
  const DefaultRecipe chosen = default_recipe(
      {.data = list.string(), .model = testing::fixture("models/timm_token").string(), .cross_validated = true});
  EXPECT_FALSE(chosen.recipe.data.balance);
  for (const std::string& reason : chosen.reasons) EXPECT_FALSE(contains(reason, "equally many")) << reason;
  EXPECT_NO_THROW(check_multi_label(chosen.recipe, 1));
}

// A model of several labels that is fine-tuned on single ones gives softmax probabilities.
TEST(MultiLabel, TheProblemTypeIsThatOfTheNewData) {
  const fs::path first = testing::scratch_folder() / "a", second = testing::scratch_folder() / "b";
  train(parse_recipe(recipe_text(label_list(24)), "r.json", {"epochs=1", "data.holdout=8"}), {.folder = first});
  const std::vector<std::string> settings{"epochs=1", R"(model={"init": ")" + (first / "model").string() + R"("})"};
  train(parse_recipe(tiny_recipe(make_images(12)), "r.json", settings), {.folder = second, .threads = 1});
  EXPECT_FALSE(models::gives_sigmoid(models::open_model(second / "model").config));
}

TEST(MultiLabel, EachSettingForOneLabelIsAProblemOfItsOwn) {
  Recipe recipe = parse_recipe(recipe_text("photos"), "r.json");
  EXPECT_NO_THROW(check_multi_label(recipe, 1));
  EXPECT_EQ(error_of([&] { check_multi_label(recipe, 2); }),
            "photos: its images have several labels:\n  expected one process, got 2");
  recipe.objective = "probe";
  recipe.loss.name = "cross_entropy";
  recipe.loss.label_smoothing = 0.25;
  recipe.loss.bce_threshold = 0.5;
  recipe.loss.distillation.emplace();
  recipe.mix.cutmix_alpha = 1;
  recipe.data.balance = true;
  recipe.model.head = "probe";
  EXPECT_EQ(error_of([&] { check_multi_label(recipe, 3); }),
            "photos: its images have several labels:\n"
            "  objective: expected \"classify\", got \"probe\"\n"
            "  loss.name: expected \"bce\" (--set loss.name=bce), got \"cross_entropy\"\n"
            "  loss.label_smoothing: expected 0, got 0.25\n"
            "  loss.bce_threshold: expected null, got a number\n"
            "  loss.distillation: expected null, got a teacher\n"
            "  model.head: expected \"drawn\", got \"probe\"\n"
            "  augment: expected neither mixup nor cutmix, got one\n"
            "  data.balance: expected false, got true\n"
            "  expected one process, got 3");
}

// A model whose head gives the same logits for each image: the loss is that of its definition.
TEST(MultiLabel, AnEvaluationHasTheLossAndTheMetricsOfItsDefinition) {
  const fs::path list = label_list(8);  // blue, green and red of every combination
  DataRecipe recipe;
  recipe.train = list.string();
  recipe.holdout = 0;
  const RunData data = open_sets(recipe, 3);
  ASSERT_TRUE(data.multi_label);
  const Recipe whole = parse_recipe(recipe_text(list), "r.json");
  PreparedModel made = prepare_model(whole.model, data.classes, 1, true);
  const std::vector<float> logits{2, -1, 0};
  const Tensor head = made.model.parameter("head.weight");
  std::fill_n(head.data<float>(), head.numel(), 0.0F);
  std::copy(logits.begin(), logits.end(), made.model.parameter("head.bias").data<float>());
  image::EvalTransform transform;
  transform.size = {8, 8};
  const auto training = training_options(whole, data, transform, 3, 1, ProcessGroup(nullptr));
  data::Loader loader = evaluation_loader(data.train, training);
  const ClassEvaluation result = evaluate(made.model, loader, 3);
  // Half of the images are positive for each class.  −log σ(x) = log(1 + exp(−x)), and log(1 + exp(x)) for the others.
  double loss = 0;
  for (const double x : logits) loss += (std::log(1 + std::exp(-x)) + std::log(1 + std::exp(x))) / 2 / 3;
  EXPECT_EQ(result.images, 8);
  EXPECT_NEAR(result.loss, loss, 1e-6);
  EXPECT_NEAR(result.top1, 0.5, 1e-12) << "all scores of a class are equal";
  EXPECT_NEAR(result.top5, 2 * 0.5 * (4.0 / 12) / (0.5 + 4.0 / 12), 1e-12) << "only the first class is predicted";
  EXPECT_TRUE(result.confusion.empty());
  EXPECT_TRUE(result.worst.empty());
  EXPECT_EQ(result.labels->class_count(), 3);
}

}  // namespace
}  // namespace vitrail::train
