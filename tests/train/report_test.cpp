// SPDX-License-Identifier: Apache-2.0
// What the report and the model card of a run say.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/train/training_fixture.h"
#include "vitrail/data/metrics/metrics.h"
#include "vitrail/train/objectives/classification/classifier_report_internal.h"
#include "vitrail/train/report/evaluation_report.h"
#include "vitrail/train/run/run_folder_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {
namespace {

int64_t count_of(const std::string& text, const std::string& part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class ReportTest : public ::testing::Test {
 protected:
  ReportTest() {
    const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json");
    result_ = train(recipe, {.folder = run_,
                             .threads = 1,
                             .environment = {{"command", "vitrail train <photos>"}, {"version", "vitrail 1.2"}}});
    page_ = read_text(run_ / "report.html");
    summary_ = nlohmann::json::parse(read_text(run_ / "summary.json"));
  }

  const fs::path run_ = testing::scratch_folder() / "run";
  TrainingResult result_;
  std::string page_;
  nlohmann::json summary_;
};

// A resumed run that has ended adds no time either.
TEST_F(ReportTest, HasTheTrainingTimeOfTheResult) {
  EXPECT_EQ(summary_["seconds"], result_.seconds);
  const Recipe same = read_recipe(run_ / "recipe.json");
  EXPECT_EQ(train(same, {.folder = run_, .resume = true, .threads = 1}).seconds, result_.seconds);
}

TEST_F(ReportTest, HasTheMetricsOfEachClass) {
  EXPECT_TRUE(contains(page_, "<th>precision</th><th>recall</th><th>F1</th>"));
  // 48 of 60 images are trained on, of each class 16; the test set has four of each.
  for (const char* name : {"blue", "green", "red"}) {
    EXPECT_TRUE(contains(page_, std::string("<tr><td>") + name + "</td><td>16</td><td>4</td><td>")) << name;
  }
}

TEST_F(ReportTest, ShowsTrainingImagesAsTheyAreAndAsTheModelSeesThem) {
  EXPECT_TRUE(contains(page_, "<h2>Training images</h2>"));
  const size_t seen = page_.find("<h2>Training images as the model sees them</h2>");
  ASSERT_NE(seen, page_.npos);
  EXPECT_EQ(count_of(page_.substr(0, seen), "<img"), 12);
  EXPECT_GE(count_of(page_.substr(seen), "<img"), 12);
}

TEST_F(ReportTest, AccuraciesHaveTheirInterval) {
  const data::Interval interval = data::wilson_interval(result_.test->scores[0].value, 12);
  char low[32];
  std::snprintf(low, sizeof low, "95 %% interval %.1f %% to ", 100 * interval.low);
  EXPECT_TRUE(contains(page_, low)) << low;
  EXPECT_EQ(summary_["test"]["top1_interval"][0], interval.low);
  EXPECT_EQ(summary_["test"]["top1_interval"][1], interval.high);
  EXPECT_EQ(summary_["held_out"]["top1_interval"][1], data::wilson_interval(result_.best->value, 12).high);
}

TEST_F(ReportTest, NamesTheCommandTheVersionAndTheProcessor) {
  EXPECT_TRUE(contains(page_, "<td>vitrail train &lt;photos&gt;</td>"));
  EXPECT_TRUE(contains(page_, "<td>vitrail 1.2</td>"));
  EXPECT_TRUE(contains(page_, "<td>processor</td>"));
  EXPECT_TRUE(contains(page_, ", 1 threads</td>"));
}

TEST_F(ReportTest, IsOneFileWithoutScripts) {
  for (const char* part : {"<script", "src=\"http", "href=", "@import"}) EXPECT_FALSE(contains(page_, part)) << part;
}

TEST_F(ReportTest, TheModelCardHasClassesAndResults) {
  const std::string card = read_text(run_ / "model/README.md");
  EXPECT_TRUE(contains(card, "Trained from scratch on 48 images of 3 classes: blue, green, red.")) << card;
  EXPECT_TRUE(contains(card, "- Test images: top-1 " + data::accuracy_text(result_.test->scores[0].value, 12))) << card;
  EXPECT_TRUE(contains(card, "library_name: vitrail")) << card;
}

TEST(ModelCard, ItsFrontMatterIsYaml) {
  Recipe recipe = parse_recipe(tiny_recipe("x"), "r.json");
  recipe.model.init = "a \"quoted\"\\path\n";
  std::vector<std::string> classes;
  for (int c = 0; c < 51; ++c) classes.push_back("c" + std::to_string(c));
  Counters counters;
  counters.history.resize(1);
  counters.seconds = 7.5;
  const ReportInput input{
      .recipe = &recipe, .counters = &counters, .subject = "vit", .images = {.training = 3}, .finished = true};
  const std::string card = classifier_card(input, classes, training_texts(recipe, 1));
  EXPECT_TRUE(contains(card, "base_model: \"a \\\"quoted\\\"\\\\path \"\n---\n# vit\n")) << card;
  EXPECT_TRUE(contains(card, "on 3 images of 51 classes: c0, c1, ")) << card;
  EXPECT_TRUE(contains(card, ", c49, ….\n")) << card;
  EXPECT_TRUE(contains(card, "the accuracy on new images is unknown")) << card;
  EXPECT_TRUE(contains(card, "1 epoch of `x` in 8 s.")) << card;
  classes.resize(50);
  EXPECT_TRUE(contains(classifier_card(input, classes, training_texts(recipe, 1)), ", c48, c49.\n"));
}

TEST(EvaluationPage, TheWorstImagesAreFirst) {
  const fs::path images = make_images(1, 4), page = testing::scratch_folder() / "page.html";
  const auto dataset = data::open_dataset(images, {.split = "test"});
  data::ClassificationReport metrics(3);
  const std::vector<float> logits{0, 3, 0};
  for (int64_t i = 0; i < dataset->size(); ++i) metrics.add(logits, dataset->label(i), "x");
  EvaluationReport evaluation{.title = "T <1>", .metrics = &metrics, .dataset = dataset.get()};
  evaluation.class_names = {"blue", "green", "red"};
  for (const auto& [sample, probability] : {std::pair{int64_t{8}, 0.3}, {3, 0.1}, {0, 0.2}})
    evaluation.wrong.push_back({sample, dataset->label(sample), 1, 0.5, probability});
  write_evaluation_report(page, evaluation);
  const std::string html = read_text(page);
  const size_t first = html.find("blue/03.png"), second = html.find("blue/00.png"), third = html.find("red/00.png");
  ASSERT_NE(third, html.npos);
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_TRUE(contains(html, "<h1>T &lt;1&gt;</h1>"));
  EXPECT_TRUE(contains(html, "<b>33.33 %</b><span>top-1, 95 % interval "));
  EXPECT_TRUE(contains(html, "<span class=\"wrong\">green</span> 50 %<small>is blue (10.0 %)")) << html;
  EXPECT_TRUE(contains(html, "<td>green</td><td>4</td><td>0.3333</td><td>1.0000</td><td>0.5000</td>")) << html;
  EXPECT_TRUE(contains(html, "blue predicted as green: 100.0 %\">4</td>"));
  EXPECT_TRUE(contains(html, "blue predicted as blue: 0.0 %\">0</td>"));
}

TEST(EvaluationPage, HasTheFactsOfTheMetrics) {
  const fs::path images = make_images(1, 4), page = testing::scratch_folder() / "page.html";
  const auto dataset = data::open_dataset(images, {.split = "test"});
  data::ClassificationReport metrics(4);
  // The four blue images and one of the green ones are taken for blue, the others for red.
  for (int64_t i = 0; i < dataset->size(); ++i) {
    const int64_t label = dataset->label(i);
    std::vector<float> logits(4);
    logits[i < 5 ? 0 : 2] = 2;
    metrics.add(logits, label, "x");
  }
  EvaluationReport evaluation{.title = "T", .subtitle = "S", .metrics = &metrics, .dataset = dataset.get()};
  evaluation.environment = {{"command", "vitrail eval"}};
  write_evaluation_report(page, evaluation);
  const std::string html = read_text(page);
  const auto percent_of = [](double fraction, int digits) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f %%", digits, 100 * fraction);
    return std::string(text);
  };
  const data::Interval top1 = data::wilson_interval(8.0 / 12, 12), top5 = data::wilson_interval(1, 12);
  for (const std::string& fact :
       {"<b>66.67 %</b><span>top-1, 95 % interval " + percent_of(top1.low, 1) + " to " + percent_of(top1.high, 1),
        "<b>100.00 %</b><span>top-5, 95 % interval " + percent_of(top5.low, 1) + " to " + percent_of(top5.high, 1),
        std::string("<b>12</b><span>images"),
        "<b>" + percent_of(metrics.macro_average().f1, 2) + "</b><span>macro average of F1",
        "<b>" + percent_of(metrics.calibration_error(), 2) + "</b><span>calibration error"}) {
    EXPECT_TRUE(contains(html, "<div class=\"fact\">" + fact + "</span></div>")) << fact;
  }
  EXPECT_TRUE(contains(html, "<p class=\"sub\">S</p>"));
  EXPECT_TRUE(contains(html, "<h2>Classes: 12 images</h2>"));
  EXPECT_TRUE(contains(html, "<h2>Confusion: 12 images</h2>"));
  EXPECT_TRUE(contains(html, "<tr><td>command</td><td>vitrail eval</td></tr>"));
  // Classes without names have their indices; the fourth is neither a label nor a prediction.
  EXPECT_TRUE(contains(html, "<thead><tr><th></th><th>0</th><th>1</th><th>2</th></tr></thead>"));
  EXPECT_TRUE(
      contains(html, "<tr><td>0</td><td>4</td><td>0.8000</td><td>1.0000</td><td>0.8889</td><td class=\"bar\">"));
  EXPECT_TRUE(
      contains(html, "<tr><td>1</td><td>4</td><td>0.0000</td><td>0.0000</td><td>0.0000</td><td class=\"bar\">"));
  EXPECT_TRUE(
      contains(html, "<tr><td>2</td><td>4</td><td>0.5714</td><td>1.0000</td><td>0.7273</td><td class=\"bar\">"));
  EXPECT_TRUE(contains(html, "1 predicted as 0: 25.0 %\">1</td>"));
  EXPECT_TRUE(contains(html, "1 predicted as 2: 75.0 %\">3</td>"));
  EXPECT_FALSE(contains(html, "Worst misclassifications"));
}

TEST(EvaluationPage, OfSeveralLabelsHasTheirFacts) {
  const fs::path page = testing::scratch_folder() / "page.html";
  data::MultiLabelReport metrics(2);
  metrics.add(std::vector<float>{1, -2}, {0}, "a");
  metrics.add(std::vector<float>{2, 3}, {1}, "b");
  metrics.add(std::vector<float>{-1, -0.5F}, {0, 1}, "c");
  EvaluationReport evaluation{.title = "T", .label_metrics = &metrics};
  evaluation.class_names = {"cat", "dog"};
  write_evaluation_report(page, evaluation);
  const std::string html = read_text(page);
  const auto fact = [](double fraction, const char* name) {
    char text[128];
    std::snprintf(text, sizeof text, "<b>%.2f %%</b><span>%s</span>", 100 * fraction, name);
    return std::string(text);
  };
  // cat: of the scores 2, 1, −1 the second and third are right: (1/2 + 2/3) / 2.  dog: the first two.
  EXPECT_TRUE(contains(html, fact((7.0 / 12 + 1) / 2, "mean average precision over the classes"))) << html;
  EXPECT_TRUE(contains(html, fact(metrics.micro_average_precision().value(), "average precision of all decisions")));
  EXPECT_TRUE(contains(html, fact(metrics.macro_average().f1, "macro average of F1")));
  EXPECT_TRUE(contains(html, fact(metrics.micro_average().f1, "micro average of F1")));
  EXPECT_NE(metrics.macro_average().f1, metrics.micro_average().f1);
  EXPECT_TRUE(contains(html, "<b>3</b><span>images</span>"));
  EXPECT_TRUE(contains(html, "<h2>Classes: 3 images</h2>"));
  EXPECT_TRUE(contains(html, "<tr><td>cat</td><td>2</td><td>0.5833</td><td>0.5000</td><td>0.5000</td><td>0.5000</td>"));
  EXPECT_TRUE(contains(html, "<tr><td>dog</td><td>2</td><td>1.0000</td><td>1.0000</td><td>0.5000</td><td>0.6667</td>"));
}

}  // namespace
}  // namespace vitrail::train
