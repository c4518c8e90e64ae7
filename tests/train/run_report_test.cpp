// SPDX-License-Identifier: Apache-2.0
// Which numbers of a run report.html, summary.json and the model card show, and where.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/train/training_fixture.h"
#include "vitrail/data/metrics/metrics.h"
#include "vitrail/train/objectives/classification/classifier_report_internal.h"
#include "vitrail/train/objectives/probe/probe_internal.h"

namespace vitrail::train {
namespace {

using SummaryJson = nlohmann::json;

// A run of made-up numbers, no two of them equal.
class RunReportTest : public ::testing::Test {
 protected:
  RunReportTest() {
    const fs::path images = make_images(10, 4);
    recipe_ = parse_recipe(tiny_recipe(images), "r.json", {"epochs=7"});
    data_ = open_sets(recipe_.data, 3);
    counters_.best = {.score = 0.75, .loss = 0.625};
    counters_.best_epoch = 2;
    counters_.best_is_average = true;
    counters_.history = {{.epoch = 1}, {.epoch = 2, .validation = Evaluation{.images = 11}}, {.epoch = 3}};
    counters_.skipped_images = 1234;
    counters_.skipped_steps = 5;
    counters_.seconds = 100;
    counters_.communication.seconds = 4;
    counters_.communication.overlapped = 3;
    counters_.communication.waited = 1;
    counters_.tested = true;
    // All blue images are right, half of the green ones are, and no image is red.
    evaluation_.images = 6;
    evaluation_.confusion = {{2, 0, 0}, {1, 2, 1}, {0, 0, 0}};
    evaluation_.worst = {
        {.sample = 4, .label = 1, .prediction = 2, .prediction_probability = 0.5, .label_probability = 0.125}};
  }

  TrainingTexts texts() const {
    return search_ ? probe_texts(recipe_, *search_) : training_texts(recipe_, std::ssize(counters_.history));
  }

  // A probe has no epochs.
  void search(analysis::StrengthSearch found) {
    search_ = std::move(found);
    recipe_.objective = "probe";
    counters_.history.clear();
    counters_.best_epoch = 0;
  }

  ReportInput input() {
    metrics_ = classification_metrics(data_.multi_label, data_.classes.size());
    counters_.test = {0.5, 9, scores_of(metrics_.each, {0.25, 0.875}, 9)};
    return {.recipe = &recipe_,
            .counters = &counters_,
            .metrics = &metrics_,
            .subject = "small",
            .images = {data_.train.size(), data_.validation.size(), data_.test.size()},
            .parameters = 54321,
            .finished = false,
            .processes = 2,
            .environment = {{"command", "vitrail train"}},
            .add_section =
                [&](Report& report) {
                  add_classes(data_, evaluation_, data_.test, galleries_, report);
                  if (search_) add_search(*search_, report);
                },
            .model_card = [&](const ReportInput& given) { return classifier_card(given, data_.classes, texts()); }};
  }

  // The page, the summary and the card.
  struct Written {
    std::string page, card;
    SummaryJson summary;
    // The value beside a fact of this name.
    std::string fact(const std::string& name) const {
      const size_t at = page.find("<span>" + name + "</span>");
      if (at == page.npos) return "none";
      const size_t begin = page.rfind("<b>", at) + 3;
      return page.substr(begin, page.find("</b>", begin) - begin);
    }
  };
  Written write() {
    const fs::path folder = testing::scratch_folder() / "my run";
    fs::create_directories(folder / "model");
    write_report(folder, input());
    return {read_text(folder / "report.html"), read_text(folder / "model/README.md"),
            SummaryJson::parse(read_text(folder / "summary.json"))};
  }

  Recipe recipe_;
  Metrics metrics_;
  RunData data_;
  Counters counters_;
  ClassEvaluation evaluation_;
  std::vector<Gallery> galleries_;
  std::optional<analysis::StrengthSearch> search_;
};

SummaryJson summary_interval(double fraction, int64_t images) {
  const data::Interval interval = data::wilson_interval(fraction, images);
  return {interval.low, interval.high};
}

TEST_F(RunReportTest, TheSummaryHasEachNumberUnderItsName) {
  const SummaryJson expected{
      {"finished", false},
      {"epochs", 3},
      {"parameters", 54321},
      {"training_images", 18},
      {"seconds", 100.0},
      {"skipped_images", 1234},
      {"skipped_steps", 5},
      {"held_out",
       {{"images", 11},
        {"top1", 0.75},
        {"top1_interval", summary_interval(0.75, 11)},
        {"epoch", 2},
        {"averaged_weights", true}}},
      {"test",
       {{"images", 9},
        {"top1", 0.25},
        {"top1_interval", summary_interval(0.25, 9)},
        {"top5", 0.875},
        {"top5_interval", summary_interval(0.875, 9)},
        {"loss", 0.5}}},
      {"exchange", {{"processes", 2}, {"seconds", 4.0}, {"overlapped_seconds", 3.0}, {"waited_seconds", 1.0}}}};
  EXPECT_EQ(write().summary, expected);
}

TEST_F(RunReportTest, FactsAreWhatTheRunMeasured) {
  Written run = write();
  EXPECT_EQ(run.fact("top-1 on the test images, 95 % interval " +
                     [] {
                       const data::Interval interval = data::wilson_interval(0.25, 9);
                       char text[64];
                       std::snprintf(text, sizeof text, "%.1f %% to %.1f %%, 9 images", 100 * interval.low,
                                     100 * interval.high);
                       return std::string(text);
                     }()),
            "25.00 %");
  EXPECT_TRUE(contains(run.page, "<b>75.00 %</b><span>best validation top-1, epoch 2, EMA weights, 95 % interval"));
  EXPECT_EQ(run.fact("epochs"), "3 of 7");
  EXPECT_EQ(run.fact("training time"), "1 min 40 s");
  EXPECT_EQ(run.fact("parameters"), "54,321");
  EXPECT_EQ(run.fact("training images"), "18");
  EXPECT_EQ(run.fact("validation images"), "12");
  EXPECT_TRUE(std::regex_search(run.page, std::regex("<tr><td>date</td><td>2[0-9]{3}-[0-9-]{5} [0-9:]{8} UTC</td>")));
  EXPECT_EQ(run.fact("unreadable images skipped"), "1,234");
  EXPECT_EQ(run.fact("non-finite steps skipped"), "5");
  EXPECT_TRUE(contains(run.page, "<h1>my run</h1>"));
  EXPECT_TRUE(contains(run.page, "small on " + recipe_.data.train + " — still running"));
  EXPECT_TRUE(contains(run.page, "<tr><td>command</td><td>vitrail train</td></tr>"));
  counters_.best_is_average = false;
  counters_.skipped_images = counters_.skipped_steps = 0;
  run = write();
  EXPECT_TRUE(contains(run.page, "best validation top-1, epoch 2, 95 % interval"));
  EXPECT_FALSE(contains(run.page, "skipped</span>"));
}

// Precision is of a column of the confusion matrix, recall of a row.
TEST_F(RunReportTest, ClassesHaveTheirMetrics) {
  const Written run = write();
  EXPECT_TRUE(contains(
      run.page, "<tr><td>blue</td><td>6</td><td>2</td><td>0.6667</td><td>1.0000</td><td>0.8000</td><td class=\"bar\">"))
      << run.page;
  EXPECT_TRUE(contains(
      run.page,
      "<tr><td>green</td><td>6</td><td>4</td><td>1.0000</td><td>0.5000</td><td>0.6667</td><td class=\"bar\">"));
  EXPECT_TRUE(contains(
      run.page, "<tr><td>red</td><td>6</td><td>0</td><td>0.0000</td><td>0.0000</td><td>0.0000</td><td class=\"bar\">"));
  EXPECT_TRUE(contains(run.page, "<span class=\"wrong\">red</span> 50 %<small>is green (12.5 %)"));
  EXPECT_TRUE(contains(run.page, "title=\"" + data_.test.dataset->path(4) + "\""));
}

TEST_F(RunReportTest, TopFiveIsAFactOfMoreThanFiveClasses) {
  for (const size_t classes : {5, 6}) {
    data_.classes.resize(3);
    while (data_.classes.size() < classes) data_.classes.push_back("x");
    const Written run = write();
    EXPECT_EQ(contains(run.page, "<b>87.50 %</b><span>top-5 on the test images"), classes == 6);
  }
}

TEST_F(RunReportTest, WhatWasNotMeasuredIsNotShown) {
  data_.test = data_.validation = {};
  counters_.history.clear();
  const Written run = write();
  EXPECT_FALSE(run.summary.contains("test") || run.summary.contains("held_out"));
  EXPECT_EQ(run.summary["epochs"], 0);
  EXPECT_FALSE(contains(run.page, "on the test images") || contains(run.page, "best validation"));
  EXPECT_TRUE(contains(run.card, "the accuracy on new images is unknown"));
}

TEST_F(RunReportTest, AProbeTellsItsCrossValidation) {
  search({.best = 0.0464159, .folds = 4, .samples = 27, .best_index = 1, .c = {0.01, 0.0464159, 10}});
  search_->held_out.resize(3);
  for (size_t i = 0; i < 3; ++i) {
    search_->held_out[i].top1 = 0.5 + 0.125 * static_cast<double>(i);
    search_->held_out[i].loss = 1.0 + static_cast<double>(i);
  }
  Written run = write();
  const SummaryJson expected{{"c", 0.0464159},
                             {"folds", 4},
                             {"cross_validated_top1", 0.625},
                             {"cross_validated_top1_interval", summary_interval(0.625, 27)},
                             {"cross_validated_images", 27},
                             {"cross_validated_loss", 2.0}};
  EXPECT_EQ(run.summary["probe"], expected);
  EXPECT_FALSE(run.summary["held_out"].contains("epoch"));
  EXPECT_TRUE(contains(run.page, "<b>62.50 %</b><span>top-1 in 4-fold cross-validation, 95 % interval"));
  EXPECT_TRUE(contains(run.page, ", 27 images</span>"));
  EXPECT_EQ(run.fact("C, the inverse strength of the L2 penalty"), "0.0464");
  EXPECT_TRUE(contains(run.page, "<span>top-1 on the validation images, 95 % interval"));
  EXPECT_TRUE(contains(run.card,
                       "4-fold cross-validation, which chose the L2 penalty: top-1 " + data::accuracy_text(0.625, 27)));
  EXPECT_TRUE(contains(run.card, "- Held-out images: top-1 ")) << run.card;
  EXPECT_FALSE(contains(run.card, "These images chose the weights"));
  EXPECT_TRUE(contains(run.card, "with C 0.0464159 (the inverse strength"));
  data_.validation = {};
  EXPECT_FALSE(contains(write().card, "Held-out images"));
  search_->folds = 0;
  run = write();
  EXPECT_EQ(run.summary["probe"].size(), 2u);
  EXPECT_FALSE(contains(run.page + run.card, "fold cross-validation"));
}

TEST_F(RunReportTest, TheCardHasTheResults) {
  const Written run = write();
  EXPECT_TRUE(contains(run.card, ", epoch 2. These images chose the weights.\n")) << run.card;
  EXPECT_TRUE(contains(run.card, "- Test images: top-1 " + data::accuracy_text(0.25, 9) + ".\n"));
  EXPECT_TRUE(contains(run.card, "3 epochs of `" + recipe_.data.train + "` in 100 s."));
  EXPECT_TRUE(contains(run.card, "Trained from scratch on 18 images of 3 classes: blue, green, red."));
}

// An accuracy and its interval are of the images that could be read.
TEST_F(RunReportTest, UnreadableHeldOutImagesAreNotCounted) {
  const Written run = write();
  EXPECT_TRUE(contains(run.card, "- Held-out images: top-1 " + data::accuracy_text(0.75, 11))) << run.card;
  const size_t fact = run.page.find("best validation top-1");
  ASSERT_NE(fact, run.page.npos);
  EXPECT_TRUE(contains(run.page.substr(fact, 100), ", 11 images</span>")) << run.page.substr(fact, 100);
}

// A card with these parts.
std::string card_with(const std::string& front, const std::string& origin, const std::string& results,
                      const std::string& training) {
  return "---\nlibrary_name: vitrail\npipeline_tag: image-classification\n"
         "tags: [vision-transformer, image-classification]\n" +
         front + "---\n# small\n\n" + origin +
         " on 18 images of 3 classes: blue, green, red.\n\n"
         "```sh\nvitrail classify -m FOLDER IMAGE    # FOLDER: the folder of this file\n```\n\n## Results\n\n" +
         results + "\n## Training\n\n" + training +
         " in 100 s. The run's `recipe.json` has all settings, `report.html` the curves, metrics by class and "
         "mistakes.\n";
}

TEST_F(RunReportTest, TheWholeCardIsOfTheRun) {
  const std::string train = recipe_.data.train;
  const std::string held_out = "- Held-out images: top-1 " + data::accuracy_text(0.75, 11);
  const std::string test = "- Test images: top-1 " + data::accuracy_text(0.25, 9) + ".\n";
  EXPECT_EQ(write().card,
            card_with("", "Trained from scratch", held_out + ", epoch 2. These images chose the weights.\n" + test,
                      "3 epochs of `" + train + "`"));
  recipe_.model.init = "timm/vit";
  counters_.tested = false;
  counters_.history.resize(1);
  EXPECT_EQ(write().card, card_with("base_model: \"timm/vit\"\n", "Fine-tuned from `timm/vit`",
                                    "- Held-out images: top-1 " + data::accuracy_text(0.75, 12) +
                                        ", epoch 2. These images chose the weights.\n",
                                    "1 epoch of `" + train + "`"))
      << "no epoch has counted the images: all of the set";
  counters_.best.score = -1;
  EXPECT_EQ(write().card, card_with("base_model: \"timm/vit\"\n", "Fine-tuned from `timm/vit`",
                                    "No images were held out, so the accuracy on new images is unknown.\n",
                                    "1 epoch of `" + train + "`"));
}

TEST_F(RunReportTest, TheCardTellsACrossValidation) {
  data_.test = data_.validation = {};
  ReportInput cross_validated = input();
  cross_validated.environment = {{"command", "c"}, {kCrossValidation, "5-fold cross-validation: mean top-1 90 %"}};
  EXPECT_EQ(classifier_card(cross_validated, data_.classes, texts()),
            card_with("", "Trained from scratch", "- 5-fold cross-validation: mean top-1 90 %.\n",
                      "3 epochs of `" + recipe_.data.train + "`"));
}

TEST_F(RunReportTest, TheCardOfAProbeNamesItsPenalty) {
  recipe_.model.init = "timm/vit";
  search({.best = 2.5, .folds = 4, .samples = 27, .best_index = 0, .c = {2.5}});
  search_->held_out = {{}};
  search_->held_out[0].top1 = 0.5;
  counters_.tested = false;
  EXPECT_EQ(write().card, card_with("base_model: \"timm/vit\"\n", "A linear probe of `timm/vit`",
                                    "- Held-out images: top-1 " + data::accuracy_text(0.75, 12) +
                                        ".\n- 4-fold cross-validation, which chose the L2 penalty: top-1 " +
                                        data::accuracy_text(0.5, 27) + ".\n",
                                    "Logistic regression on features of `" + recipe_.data.train +
                                        "`, with C 2.5 (the inverse strength of the L2 penalty)"));
}

TEST_F(RunReportTest, SeveralLabelsHaveTheirOwnMetrics) {
  data_.multi_label = true;
  evaluation_ = {};
  evaluation_.images = 4;
  evaluation_.labels.emplace(3);
  evaluation_.labels->add(std::vector<float>{1, -1, -1}, {0}, "a");
  evaluation_.labels->add(std::vector<float>{1, 2, -1}, {0, 1}, "b");
  evaluation_.labels->add(std::vector<float>{3, -1, -1}, {1}, "c");
  const Written run = write();
  const SummaryJson held_out{{"images", 11}, {"map", 0.75}, {"epoch", 2}, {"averaged_weights", true}};
  const SummaryJson test{{"images", 9}, {"map", 0.25}, {"f1", 0.875}, {"loss", 0.5}};
  EXPECT_EQ(run.summary["held_out"], held_out);
  EXPECT_EQ(run.summary["test"], test);
  EXPECT_EQ(run.fact("mean average precision on the test images, 9 images"), "25.00 %");
  EXPECT_EQ(run.fact("F1 on the test images, 9 images"), "87.50 %");
  EXPECT_EQ(run.fact("best validation mean average precision, epoch 2, EMA weights, 11 images"), "75.00 %");
  // Blue: the wrong image has the highest score, and the two right ones share the next: 2/3.  Green: (1 + 2/3) / 2.
  EXPECT_TRUE(contains(run.page,
                       "<tr><td>blue</td><td>6</td><td>2</td><td>0.6667</td><td>0.6667</td><td>1.0000</td>"
                       "<td>0.8000</td><td class=\"bar\">"))
      << run.page;
  EXPECT_TRUE(contains(run.page,
                       "<tr><td>green</td><td>6</td><td>2</td><td>0.8333</td><td>1.0000</td><td>0.5000</td>"
                       "<td>0.6667</td><td class=\"bar\">"))
      << run.page;
  EXPECT_TRUE(contains(run.page, "<tr><td>red</td><td>6</td><td>0</td><td></td><td>0.0000</td>")) << "no image is red";
  EXPECT_FALSE(contains(run.page, "Confusion"));
  EXPECT_TRUE(contains(run.card, "- Held-out images: mean average precision 0.7500 on 11 images, epoch 2. These"));
  EXPECT_TRUE(contains(run.card, "- Test images: mean average precision 0.2500 on 9 images.\n"));
}

TEST_F(RunReportTest, AFinishedRunOfOneProcessIsNotRunning) {
  const fs::path folder = testing::scratch_folder() / "done";
  fs::create_directories(folder);
  ReportInput finished = input();
  finished.finished = true;
  finished.processes = 1;
  counters_.best.score = -1;
  write_report(folder / "", finished);
  const std::string page = read_text(folder / "report.html");
  EXPECT_TRUE(contains(page, "<h1>done</h1>\n<p class=\"sub\">small on " + recipe_.data.train + "</p>"));
  EXPECT_TRUE(contains(page, "<b>3</b><span>epochs</span>"));
  EXPECT_FALSE(contains(page, "best validation"));
  const SummaryJson summary = SummaryJson::parse(read_text(folder / "summary.json"));
  EXPECT_EQ(summary["finished"], true);
  EXPECT_FALSE(summary.contains("exchange"));
  EXPECT_EQ(summary["held_out"]["top1"], 0) << "nothing was validated yet";
  EXPECT_FALSE(fs::exists(folder / "model")) << "the card is written beside a model";
}

TEST_F(RunReportTest, TheChartsOfAProbeAreOfItsPenalties) {
  search({.best = 10, .folds = 2, .samples = 27, .best_index = 1, .c = {0.01, 10}});
  search_->held_out.resize(2);
  search_->held_out[0] = {.loss = 2, .top1 = 0.25};
  search_->held_out[1] = {.loss = 0.5, .top1 = 0.75};
  const Written run = write();
  for (const char* part :
       {"<h3>Held-out loss</h3>", "<h3>Held-out top-1 accuracy</h3>", ">log10 C</text>",
        "<title>cross-validation: 2 at -2</title>", "<title>cross-validation: 0.5 at 1</title>",
        "<title>cross-validation: 0.25 at -2</title>", "<title>cross-validation: 0.75 at 1</title>", ">60 %</text>"}) {
    EXPECT_TRUE(contains(run.page, part)) << part;
  }
}

TEST(EnvironmentOf, EndsWithTheProcessor) {
  const auto environment = environment_of({.environment = {{"command", "c"}, {"version", "v"}}}, 7);
  ASSERT_EQ(environment.size(), 3u);
  EXPECT_EQ(environment[0], (std::pair<std::string, std::string>{"command", "c"}));
  EXPECT_EQ(environment[1], (std::pair<std::string, std::string>{"version", "v"}));
  EXPECT_EQ(environment[2].first, "processor");
  EXPECT_TRUE(environment[2].second.ends_with(", 7 threads")) << environment[2].second;
}

}  // namespace
}  // namespace vitrail::train
