// SPDX-License-Identifier: Apache-2.0
// vitrail eval of models that give each of several labels its own probability.
#include <cmath>

#include "tests/apps/cli_fixture.h"
#include "vitrail/base/npy.h"
#include "vitrail/data/metrics/multi_label_report.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kLabelledImages = 6;
const std::vector<std::vector<int64_t>> kLabels{{0, 3}, {1}, {}, {2, 3, 9}, {0}, {9}};

class EvalLabels : public ::testing::Test {
 protected:
  EvalLabels() {
    std::ofstream list(root_ / "list.csv");
    list << "file,labels\n";
    for (int i = 0; i < kLabelledImages; ++i) {
      list << static_cast<char>('a' + i) << ".png,";
      for (const int64_t label : kLabels[static_cast<size_t>(i)]) list << label << '|';
      list << '\n';
    }
  }

  ProgramResult eval(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{
        "eval",          "-m",     model_, root_ / "list.csv", "--logits", root_ / "l.npy", "--predictions",
        root_ / "p.csv", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  }

  data::MultiLabelReport expected() const {
    const std::vector<float> logits = read_npy(root_ / "l.npy").f32;
    data::MultiLabelReport report(kSmallModelClasses);
    for (int i = 0; i < kLabelledImages; ++i)
      report.add({logits.data() + i * kSmallModelClasses, kSmallModelClasses}, kLabels[static_cast<size_t>(i)],
                 "image");
    return report;
  }

  const fs::path root_ = image_folder(kLabelledImages);
  const fs::path model_ =
      with_config("timm_token", [](nlohmann::json& config) { config["problem_type"] = "multi_label_classification"; });
};

TEST_F(EvalLabels, JsonIsTheReportOfTheLogits) {
  const ProgramResult result = eval({"--format", "json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = json_lines(result.out).at(0);
  const data::MultiLabelReport report = expected();
  EXPECT_EQ(json["images"], kLabelledImages);
  EXPECT_EQ(json["activation"], "sigmoid");
  EXPECT_EQ(json["map"], report.macro_average_precision().value());
  EXPECT_EQ(json["map_micro"], report.micro_average_precision().value());
  EXPECT_EQ(json["exact"], report.exact());
  EXPECT_EQ(json["macro"]["f1"], report.macro_average().f1);
  EXPECT_EQ(json["micro"]["recall"], report.micro_average().recall);
  ASSERT_EQ(json["classes"].size(), 10u);
  EXPECT_EQ(json["classes"][9]["average_precision"], report.average_precision_of(9).value());
  EXPECT_EQ(json["classes"][9]["images"], 2);
  EXPECT_EQ(json["classes"][3]["precision"], report.of_class(3).precision);
  EXPECT_TRUE(json["classes"][5]["average_precision"].is_null());
}

TEST_F(EvalLabels, TheTableHasTheMeansAndEachClass) {
  const ProgramResult result = eval({"--report", root_ / "r.html"});
  ASSERT_EQ(result.status, 0) << result.err;
  const data::MultiLabelReport report = expected();
  EXPECT_TRUE(
      contains(result.out, formatted("mean average precision %.4f (macro)", report.macro_average_precision().value())))
      << result.out;
  EXPECT_TRUE(contains(result.out, "all labels right: " + data::accuracy_text(report.exact(), kLabelledImages)))
      << result.out;
  EXPECT_TRUE(contains(result.out, "micro average")) << result.out;
  std::ifstream page(root_ / "r.html");
  const std::string html{std::istreambuf_iterator<char>(page), {}};
  EXPECT_TRUE(contains(html, "<th>average precision</th>") && !contains(html, "Confusion"));
}

TEST_F(EvalLabels, PredictionsHaveTheProbabilityOfEachClassAndFailures) {
  std::ofstream(root_ / "c.png", std::ios::trunc) << "no image";
  EXPECT_EQ(eval().status, 1);
  std::ifstream file(root_ / "p.csv");
  const std::vector<std::string> rows = lines_of({std::istreambuf_iterator<char>(file), {}});
  ASSERT_EQ(rows.size(), kLabelledImages + 1u);
  EXPECT_TRUE(rows[0].starts_with("file,labels,predictions,")) << rows[0];
  EXPECT_TRUE(contains(rows[3], "c.png,,,,,,,,,,,,")) << rows[3];
  const std::string failure = rows[3].substr(rows[3].find("c.png"));
  EXPECT_EQ(failure.find_first_not_of(',', 5), 5U + std::ranges::count(rows[0], ',')) << "the error is the last column";
  const std::vector<float> logits = read_npy(root_ / "l.npy").f32;
  EXPECT_TRUE(std::isnan(logits[2 * kSmallModelClasses]));
  EXPECT_TRUE(rows[1].ends_with(formatted("%.6g,", data::sigmoid(logits[kSmallModelClasses - 1])))) << rows[1];
  EXPECT_TRUE(contains(rows[1], "a.png,0|3,") || contains(rows[1], "a.png,class 0|class 3,")) << rows[1];
}

TEST_F(EvalLabels, WithoutAnyLabelAveragePrecisionIsNull) {
  std::ofstream(root_ / "list.csv") << "file,labels\na.png,\nb.png,\n";
  const ProgramResult result = eval({"--format", "json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = json_lines(result.out).at(0);
  EXPECT_TRUE(json["map"].is_null() && json["map_micro"].is_null()) << result.out;
  const ProgramResult table = eval({"--report", root_ / "r.html"});
  EXPECT_TRUE(table.out.starts_with("mean average precision none (macro), none (micro)\n")) << table.out;
}

// Joined names could not be told apart.
TEST_F(EvalLabels, ANameWithTheSeparatorIsRefused) {
  std::ofstream names(root_ / "names.txt");
  for (int i = 0; i < kSmallModelClasses; ++i) names << "n" << i << (i == 4 ? "|x\n" : "\n");
  names.close();
  const ProgramResult result = eval({"--labels", root_ / "names.txt"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "p.csv: expected class names without '|', which separates them, got 'n4|x'"))
      << result.err;
}

TEST_F(EvalLabels, ModelsAndDatasetsMustAgree) {
  const fs::path folders = scratch_folder();
  fs::create_directories(folders / "0");
  fs::create_directories(folders / "1");
  fs::copy(root_ / "a.png", folders / "0/a.png");
  fs::copy(root_ / "b.png", folders / "1/b.png");
  ProgramResult result = run_program({"eval", "-m", model_, folders});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "expected a dataset of several labels per image")) << result.err;
  result = run_program({"eval", "-m", small_model(), root_ / "list.csv"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "expected a dataset of one label per image, got several")) << result.err;
  std::ofstream(root_ / "names.csv") << "file,labels\na.png,pony;cute\nb.png,tabby\n";
  for (const char* list : {"list.csv", "names.csv"}) {
    result = run_program({"knn", "-m", small_model(), root_ / list, root_ / list});
    EXPECT_EQ(result.status, 1) << list;
    EXPECT_TRUE(contains(result.err, "expected a dataset of one label per image, got several")) << result.err;
  }
}

}  // namespace
}  // namespace vitrail::testing
