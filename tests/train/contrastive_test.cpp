// SPDX-License-Identifier: Apache-2.0
// The objective "contrastive".
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/dist/thread_communicator.h"
#include "tests/support/errors.h"
#include "tests/train/contrastive_fixture.h"
#include "tests/train/metrics_comparison.h"
#include "vitrail/pipeline/dual_model.h"
#include "vitrail/train/objectives/contrastive/contrastive_internal.h"
#include "vitrail/train/recipe/default_recipe.h"

namespace vitrail::train {
namespace {

const std::vector<std::string> kFast{"optimizer.lr=3e-3"};

TrainingResult train_fast(const fs::path& run, const Recipe& recipe) {
  return train(recipe, {.folder = run, .force = true, .threads = 2});
}

std::vector<nn::NamedTensor> saved_tensors(const fs::path& model) {
  const auto checkpoint = weights::Checkpoint::open(model / "model.safetensors");
  std::vector<nn::NamedTensor> tensors;
  for (const std::string& name : checkpoint.names()) tensors.push_back({name, checkpoint.tensor(name).clone()});
  return tensors;
}

// Whether all tensors of a kind are equal in two folders of models.
bool equal_tensors(const fs::path& a, const fs::path& b, const std::string& prefix) {
  const auto first = saved_tensors(a), second = saved_tensors(b);
  EXPECT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].name, second[i].name);
    if (first[i].name.starts_with(prefix) && !testing::close(first[i].tensor, second[i].tensor, 0)) return false;
  }
  return true;
}

TEST(Contrastive, LearnsWhichCaptionsGoWithWhichImages) {
  const fs::path pairs = make_pairs(), run = testing::scratch_folder() / "run";
  const TrainingResult result =
      train_fast(run, contrastive_recipe_for(pairs, {"optimizer.lr=3e-3", "epochs=12", "contrastive.towers=both"}));
  ASSERT_TRUE(result.start && result.best);
  EXPECT_GT(result.best_epoch, 0);
  const auto summary = nlohmann::json::parse(read_text(run / "summary.json"));
  EXPECT_LT(summary["held_out"]["loss"].get<double>(), summary["start_loss"].get<double>());
  EXPECT_EQ(summary["start_text_recall1"], result.start->value);
  EXPECT_EQ(result.validation_images, 8);
}

TEST(Contrastive, TheModelOpensWithTokenizerAndProcessor) {
  const fs::path pairs = make_pairs(), run = testing::scratch_folder() / "run";
  train_fast(run, contrastive_recipe_for(pairs, kFast));
  const DualModel model(models::ModelFiles(run / "model"));
  EXPECT_EQ(model.embed_texts({"a red photo"}).shape(), (Shape{1, 10}));
  EXPECT_EQ(model.embed_image(image::make_image(20, 20, 3)).shape(), (Shape{1, 10}));
  for (const char* file : {"config.json", "preprocessor_config.json", "vocab.json", "merges.txt"})
    EXPECT_EQ(read_text(run / "model" / file), read_text(small_clip() / file)) << file;
  EXPECT_TRUE(contains(read_text(run / "model/README.md"), "32 images with captions of"));
}

TEST(Contrastive, StoppedAndResumedGivesTheBitsOfAnUninterruptedRun) {
  const fs::path pairs = make_pairs(), scratch = testing::scratch_folder();
  const Recipe recipe = contrastive_recipe_for(pairs, {"accumulate=2", "contrastive.alpha=0.7"});
  train_to(scratch / "whole", recipe);
  for (const int steps : {1, 2, 1}) train_to(scratch / "parts", recipe, true, steps);
  EXPECT_FALSE(train_to(scratch / "parts", recipe, true).stopped);
  expect_same_runs(scratch / "whole", scratch / "parts");
}

TEST(Contrastive, ResumingWithOtherCaptionsIsTold) {
  const fs::path pairs = make_pairs(), run = testing::scratch_folder() / "run";
  train_to(run, contrastive_recipe_for(pairs), false, 1);
  std::string rows = read_text(pairs);
  rows.replace(rows.find("number 3"), 8, "number x");
  for (const auto& [text, told] : {std::pair{read_text(pairs), false}, {rows, true}}) {
    write_file(pairs, text);
    const Warnings warnings;
    train_to(run, contrastive_recipe_for(pairs), true, 1);
    EXPECT_EQ(warnings.any("captioned training images"), told);
  }
}

TEST(Contrastive, TwoProcessesGiveTheLossesOfOneWithTheDoubleBatch) {
  const fs::path pairs = make_pairs(), scratch = testing::scratch_folder();
  for (const char* loss : {"softmax", "sigmoid"}) {
    const fs::path model = testing::fixture(std::string(loss) == "softmax" ? "models/hf_clip" : "models/hf_siglip2");
    const auto recipe = [&](const char* batch) {
      return contrastive_recipe_for(pairs, {batch, str("contrastive.loss=", loss)}, model);
    };
    const fs::path one = scratch / loss / "one", two = scratch / loss / "two";
    train_to(one, recipe("batch_size=16"), false, std::nullopt, 1);
    const Recipe half = recipe("batch_size=8");
    dist::testing::run_ranks(2, [&](const std::shared_ptr<dist::Communicator>& communicator) {
      train(half, {.folder = two, .threads = 1, .communicator = communicator});
    });
    const auto first = train_column(one, Column::loss), second = train_column(two, Column::loss);
    ASSERT_EQ(first.size(), second.size());
    for (size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first[i], second[i], 1e-5 * first[i]) << loss << i;
    const auto norm = train_column(one, Column::gradient_norm), norm2 = train_column(two, Column::gradient_norm);
    for (size_t i = 0; i < norm.size(); ++i) EXPECT_NEAR(norm[i], norm2[i], 1e-3 * norm[i]) << loss << i;
  }
}

TEST(Contrastive, TheImageTowerAloneLeavesTheTextTower) {
  const fs::path pairs = make_pairs(), run = testing::scratch_folder() / "run";
  train_fast(run, contrastive_recipe_for(pairs, {"optimizer.lr=3e-3", "contrastive.towers=image"}));
  EXPECT_TRUE(equal_tensors(run / "last", small_clip(), "text_"));
  EXPECT_FALSE(equal_tensors(run / "last", small_clip(), "vision_"));
}

// The text embeddings that are computed once are those of each step.
TEST(Contrastive, FixedTextsGiveTheLossOfTheirTower) {
  const fs::path pairs = make_pairs(), scratch = testing::scratch_folder();
  const auto losses = [&](const char* towers) {
    train_to(scratch / towers,
             contrastive_recipe_for(pairs, {"optimizer.lr=1e-12", "epochs=1", str("contrastive.towers=", towers)}));
    return train_column(scratch / towers, Column::loss);
  };
  const auto fixed = losses("image"), both = losses("both");
  ASSERT_EQ(fixed.size(), both.size());
  for (size_t i = 0; i < both.size(); ++i) EXPECT_NEAR(fixed[i], both[i], 1e-5) << i;
}

TEST(Contrastive, AnAverageWithTheStartOfWeightZeroIsTheStart) {
  const fs::path pairs = make_pairs(), run = testing::scratch_folder() / "run";
  const TrainingResult result =
      train_fast(run, contrastive_recipe_for(pairs, {"optimizer.lr=3e-3", "contrastive.alpha=0"}));
  EXPECT_TRUE(equal_tensors(run / "last", small_clip(), ""));
  EXPECT_EQ(result.last->value, result.start->value);
}

// (1 − α) · start + α · trained, and the scores are those of that model.
TEST(Contrastive, SavesAndMeasuresTheAverageWithTheStart) {
  const fs::path pairs = make_pairs(), scratch = testing::scratch_folder();
  train_fast(scratch / "full", contrastive_recipe_for(pairs, kFast));
  train_fast(scratch / "half", contrastive_recipe_for(pairs, {"optimizer.lr=3e-3", "contrastive.alpha=0.5"}));
  const auto start = saved_tensors(small_clip()), full = saved_tensors(scratch / "full/last"),
             half = saved_tensors(scratch / "half/last");
  for (size_t i = 0; i < start.size(); ++i) {
    const Tensor a = start[i].tensor.contiguous(), b = full[i].tensor.contiguous(), mean = Tensor::empty(a.shape());
    for (int64_t k = 0; k < a.numel(); ++k) mean.data<float>()[k] = (a.data<float>()[k] + b.data<float>()[k]) / 2;
    EXPECT_TRUE(testing::close(half[i].tensor, mean, 1e-6)) << start[i].name;
  }
  const auto last_loss = [&](const fs::path& run) {
    std::string row = read_text(run / "metrics.csv");
    row = row.substr(row.rfind("\nval,") + 1);
    for (int column = 0; column < 3; ++column) row = row.substr(row.find(',') + 1);
    return std::stod(row);
  };
  train_fast(scratch / "again",
             contrastive_recipe_for(pairs, {"optimizer.lr=1e-12", "epochs=1"}, scratch / "half/last"));
  EXPECT_NEAR(last_loss(scratch / "half"), last_loss(scratch / "again"), 1e-5);
}

// The drawn weights of the fixture are worse than a model that gives all pairs the same logit; trained ones are not.
TEST(Contrastive, KeepsTheStartWhereNoEpochIsBetter) {
  const fs::path pairs = make_pairs(), scratch = testing::scratch_folder();
  train_fast(scratch / "start", contrastive_recipe_for(pairs, {"optimizer.lr=3e-3", "epochs=6"}));
  const TrainingResult result =
      train_fast(scratch / "run",
                 contrastive_recipe_for(pairs, {"optimizer.name=sgd", "optimizer.lr=10"}, scratch / "start/model"));
  EXPECT_EQ(result.best_epoch, 0);
  EXPECT_TRUE(equal_tensors(scratch / "run/model", scratch / "start/model", ""));
}

TEST(Contrastive, RefusesWhatDestroysAModel) {
  const fs::path pairs = make_pairs(), run = testing::scratch_folder() / "run";
  const auto refusal = [&](const std::vector<std::string>& settings) {
    return error_of([&] { train_to(run, contrastive_recipe_for(pairs, settings)); });
  };
  EXPECT_ERROR(refusal({"optimizer.lr=0.0002"}), "optimizer.lr", "0.0002");
  EXPECT_ERROR(refusal({"batch_size=4"}), "batch_size", "4");
  EXPECT_FALSE(fs::exists(run));
  EXPECT_FALSE(train_fast(run, contrastive_recipe_for(pairs, {"batch_size=4", "epochs=1"})).stopped);
}

TEST(Contrastive, CountsCaptionsOfSeveralImages) {
  const fs::path pairs = make_pairs(20), run = testing::scratch_folder() / "run";
  std::string rows = "file,caption\n";
  for (int i = 0; i < 20; ++i) rows += str("images/", 100 + i, ".png,", i < 12 ? "a cat" : str("number ", i), "\n");
  write_file(pairs, rows);
  std::vector<std::string> messages;
  const TrainerCallbacks callbacks{.message = [&](const std::string& line) { messages.push_back(line); }};
  train(contrastive_recipe_for(pairs, {"data.holdout=0", "epochs=1"}), {.folder = run, .threads = 1}, callbacks);
  const auto told = [&](const std::string& part) {
    return std::ranges::count_if(messages, [&](const std::string& line) { return contains(line, part); });
  };
  EXPECT_EQ(told("12 captions of several images"), 1);
}

TEST(Contrastive, DrawsACaptionOfTheImageInEachEpoch) {
  const models::OpenedModel opened = models::open_model(small_clip());
  const PairData data = open_pair_sets({.train = make_pairs(20).string(), .holdout = 0}, 3);
  const CaptionTokens tokens(DualTexts(opened), *data.train, *data.images.train.dataset);
  EXPECT_EQ(tokens.size(), 40);
  std::vector<int64_t> seconds(4);
  int64_t changed = 0;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    for (int64_t image = 0; image < 20; ++image) {
      const int64_t caption = drawn_caption(tokens, image, 7, epoch);
      EXPECT_EQ(caption / 2, image);
      EXPECT_EQ(caption, drawn_caption(tokens, image, 7, epoch));
      seconds[static_cast<size_t>(epoch)] += caption % 2;
      changed += caption != drawn_caption(tokens, image, 7, epoch + 1) ? 1 : 0;
    }
  }
  for (const int64_t count : seconds) EXPECT_TRUE(count > 2 && count < 18) << count;
  EXPECT_GT(changed, 20) << "of 80";
}

TEST(Contrastive, LimitsTheScaleOfTheSoftmaxLossTo100) {
  const Recipe recipe = contrastive_recipe_for(make_pairs());
  const ProcessGroup alone{nullptr};
  Contrastive objective({.recipe = recipe, .group = alone, .threads = 1, .folder = {}, .log = [](const auto&) {}});
  const Tensor scale = objective.model().parameter("logit_scale");
  for (const auto& [before, after] : {std::pair(10.0, std::log(100.0)), {3.0, 3.0}}) {
    scale.copy_(Tensor::full({1}, before));
    objective.end_step(0.5);
    EXPECT_NEAR(scale.item<double>(), after, 1e-6);
  }
}

TEST(Contrastive, HoldsOutAllCaptionsOfAnImage) {
  const PairData data = open_pair_sets({.train = make_pairs().string()}, 3);
  EXPECT_EQ(data.images.validation.size(), 4);  // a tenth
  EXPECT_EQ(data.images.train.size(), 36);
  for (const int64_t image : data.images.validation.samples)
    EXPECT_EQ(std::ranges::count(data.images.train.samples, image), 0);
  EXPECT_TRUE(contains(data.images.validation.name, "4 images with 8 captions held out of"));
}

TEST(Contrastive, MeasuresZeroShotAccuracy) {
  const fs::path pairs = make_pairs(), run = testing::scratch_folder() / "run", labelled = make_images(10, 10);
  const TrainingResult result =
      train_fast(run, contrastive_recipe_for(pairs, {"optimizer.lr=3e-3", "contrastive.zero_shot=" + labelled.string(),
                                                     R"(contrastive.templates=["a {} photo", "a {} drawing"])"}));
  EXPECT_EQ(result.metrics.back().name, "zero_shot");
  const auto summary = nlohmann::json::parse(read_text(run / "summary.json"));
  // The start's, by the pipeline.
  const DualModel model{models::ModelFiles(small_clip())};
  const Tensor labels = model.embed_labels({"blue", "green", "red"}, {"a {} photo", "a {} drawing"});
  int64_t correct = 0;
  for (int label = 0; label < 3; ++label) {
    for (const auto& file : fs::directory_iterator(labelled / "test" /
                                                   (label == 0   ? "blue"
                                                    : label == 1 ? "green"
                                                                 : "red"))) {
      const Tensor scores = model.similarity(model.embed_image(model.images().read(file.path())), labels);
      correct += std::max_element(scores.data<float>(), scores.data<float>() + 3) - scores.data<float>() == label;
    }
  }
  EXPECT_NEAR(summary["start_zero_shot"].get<double>(), static_cast<double>(correct) / 30, 1e-9);
}

// Two images with two captions and one: by hand.
TEST(RetrievalRecall, CountsAnyCaptionOfAnImage) {
  PairEmbeddings pairs{.images = Tensor::from<float>({2, 2}, {1, 0, 0, 1}),
                       .texts = Tensor::from<float>({3, 2}, {0.6F, 0.8F, 1, 0, 0.8F, 0.6F}),
                       .samples = {0, 1},
                       .image_of_text = {0, 0, 1}};
  // Image 0 finds its second caption; image 1 is nearest to the first of image 0.  Captions 0 and 2 find the other
  // image.
  const std::vector<double> expected{0.5, 1, 1.0 / 3, 1};
  const std::vector<double> values = retrieval_recall(pairs);
  ASSERT_EQ(values.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(values[i], expected[i], 1e-12) << i;
}

TEST(Contrastive, TheReportHasTheStartAndWhatCaptionsRetrieve) {
  const fs::path pairs = make_pairs(), run = testing::scratch_folder() / "run";
  train_fast(run, contrastive_recipe_for(pairs, kFast));
  const std::string page = read_text(run / "report.html");
  for (const char* text : {"each before the three that its caption retrieves, before training</h2>",
                           "each before the three that its caption retrieves</h2>", "before training</span>",
                           "text recall@1, before → after training"})
    EXPECT_TRUE(contains(page, text)) << text;
}

// A list with the splits of its rows: each image is in one of them.
fs::path pairs_with_splits() {
  const fs::path pairs = make_pairs(), list = pairs.parent_path() / "splits.csv";
  std::istringstream lines(read_text(pairs));
  std::string rows = "filepath,title,split\n", line;
  std::getline(lines, line);
  for (int row = 0; std::getline(lines, line); ++row)
    rows += line + (row < 48 ? ",train\n" : row < 60 ? ",val\n" : ",test\n");
  write_file(list, rows);
  return list;
}

TEST(Contrastive, MeasuresTheSavedModelOnTheSplitTest) {
  const fs::path pairs = pairs_with_splits(), runs = testing::scratch_folder();
  const std::vector<std::string> splits{"data.val=" + pairs.string(), "data.holdout=null"};
  std::vector<std::string> settings = splits;
  settings.push_back("data.test=" + pairs.string());
  const TrainingResult result = train_fast(runs / "run", contrastive_recipe_for(pairs, settings));
  ASSERT_TRUE(result.test);
  EXPECT_EQ(result.test->images, 10);
  EXPECT_EQ(result.validation_images, 6);
  // As the validation images of a run that stays at its start, which is the saved model.
  const fs::path test = runs / "test.csv";
  std::istringstream lines(read_text(pairs));
  std::string rows = "filepath,title\n";
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(",test"))
      rows += pairs.parent_path().string() + "/" + line.substr(0, line.size() - std::string(",test").size()) + "\n";
  }
  write_file(test, rows);
  const TrainingResult still =
      train_fast(runs / "still", contrastive_recipe_for(pairs,
                                                        {"data.val=" + test.string(), "data.holdout=null", "epochs=1",
                                                         "optimizer.lr=0", "optimizer.weight_decay=0"},
                                                        runs / "run/model"));
  for (size_t i = 0; i < still.start_scores.size(); ++i)
    EXPECT_EQ(still.start_scores[i].value, result.test->scores[i].value) << still.start_scores[i].name;
  EXPECT_TRUE(contains(read_text(runs / "run/report.html"), "Test images, each before the three"));
}

TEST(Contrastive, TheDefaultRecipeTakesTheSplits) {
  const fs::path pairs = pairs_with_splits();
  const testing::Warnings warnings;
  const Recipe recipe = default_recipe({.data = pairs.string(), .model = small_clip().string()}).recipe;
  EXPECT_EQ(recipe.data.val, pairs.string());
  EXPECT_EQ(recipe.data.test, pairs.string());
}

TEST(Contrastive, TheDefaultRecipeIsThatOfFineTuningAClip) {
  const fs::path pairs = make_pairs();
  EXPECT_EQ(dataset_objective(pairs.string()), "contrastive");
  const DefaultRecipe chosen = default_recipe({.data = pairs.string(), .model = small_clip().string()});
  const Recipe& recipe = chosen.recipe;
  EXPECT_EQ(recipe.objective, "contrastive");
  EXPECT_EQ(recipe.batch_size, 8);
  EXPECT_GE(recipe.lr, 5e-6);
  EXPECT_LE(recipe.lr, 1e-5);
  EXPECT_EQ(recipe.optimizer.beta2, 0.98);
  EXPECT_EQ(recipe.groups.weight_decay, 0.1);
  EXPECT_EQ(recipe.augment.random_resized_crop->scale[0], 0.9);
  EXPECT_NEAR(recipe.schedule.warmup_epochs, 0.1 * static_cast<double>(recipe.epochs), 1e-12);
  EXPECT_ERROR(error_of([&] { default_recipe({.data = pairs.string()}); }), "-m", "none");
  const std::string image_model = testing::fixture("models/hf_clip_vision").string();
  EXPECT_TRUE(contains(error_of([&] { default_recipe({.data = pairs.string(), .model = image_model}); }),
                       "expected a dual model with a text tower"));
}

TEST(Contrastive, RefusesSettingsThatDoNotGoWithPairs) {
  const fs::path pairs = make_pairs(8);
  const auto refusal = [&](const std::string& setting) {
    return error_of([&] { contrastive_recipe_for(pairs, {setting}); });
  };
  for (const char* setting :
       {"model.init=", "model.depth=3", "model.linear_probe=true", "data.test_split=x", "data.mean=[0.5,0.5,0.5]",
        "data.unreadable=leave_out", "data.retrain=true", "loss.label_smoothing=0.1", "augment.mixup=0.2",
        R"(token_drop={"rate": 0.5})", "augment.repeats=2", "contrastive.templates=[]", "contrastive.alpha=2",
        "contrastive.towers=text"})
    EXPECT_TRUE(contains(refusal(setting), "expected")) << setting;
  const fs::path run = testing::scratch_folder() / "run";
  EXPECT_ERROR(error_of([&] { train_to(run, contrastive_recipe_for(make_pairs(), {"contrastive.loss=sigmoid"})); }),
               "contrastive.loss", "\"sigmoid\"");
  EXPECT_ERROR(error_of([&] { train_to(run, contrastive_recipe_for(make_pairs(), {"data.holdout=40"})); }),
               "data.holdout", "40");
}

}  // namespace
}  // namespace vitrail::train
