// SPDX-License-Identifier: Apache-2.0
// The outputs of vitrail eval agree with each other and with the logits.
#include <algorithm>
#include <cmath>
#include <fstream>

#include "tests/apps/shell.h"
#include "vitrail/base/npy.h"
#include "vitrail/data/metrics/classification_report.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kImages = 12;

// Folders 0 to 3 with three images each.
fs::path dataset() {
  const fs::path images = image_folder(kImages), root = scratch_folder();
  for (int i = 0; i < kImages; ++i) {
    const fs::path folder = root / std::to_string(i % 4);
    fs::create_directories(folder);
    const std::string name = std::string(1, static_cast<char>('a' + i)) + ".png";
    fs::rename(images / name, folder / name);
  }
  return root;
}

class EvalOutput : public ::testing::Test {
 protected:
  ProgramResult eval(const std::string& format) {
    return run_program({"eval", "-m", small_model(), root_, "--format", format, "--logits", root_ / "l.npy",
                        "--predictions", root_ / "p.csv"});
  }

  // The report of the logits that eval wrote.  Files are in the order of their paths: 0/a.png, 0/e.png, …
  data::ClassificationReport expected() const {
    const std::vector<float> logits = read_npy(root_ / "l.npy").f32;
    data::ClassificationReport report(kSmallModelClasses);
    for (int i = 0; i < kImages; ++i)
      report.add({logits.data() + i * kSmallModelClasses, kSmallModelClasses}, i / 3, "image");
    return report;
  }

  fs::path root_ = dataset();
};

TEST_F(EvalOutput, JsonIsTheReportOfTheLogits) {
  const ProgramResult result = eval("json");
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = json_lines(result.out).at(0);
  const data::ClassificationReport report = expected();
  EXPECT_EQ(json["images"], kImages);
  EXPECT_EQ(json["top1"], report.top1());
  EXPECT_EQ(json["top5"], report.top5());
  EXPECT_EQ(json["top5_interval"][0], data::wilson_interval(report.top5(), kImages).low);
  EXPECT_EQ(json["top1_interval"][1], data::wilson_interval(report.top1(), kImages).high);
  EXPECT_EQ(json["calibration_error"], report.calibration_error());
  EXPECT_EQ(json["macro"]["f1"], report.macro_average().f1);
  EXPECT_EQ(json["weighted"]["precision"], report.weighted_average().precision);
  ASSERT_EQ(json["classes"].size(), report.classes().size());
  for (const auto& entry : json["classes"]) {
    EXPECT_EQ(entry["recall"], report.of_class(entry["index"]).recall);
    EXPECT_EQ(entry["images"], report.of_class(entry["index"]).support);
  }
  int64_t counted = 0;
  for (const auto& entry : json["confusion"]) {
    EXPECT_EQ(report.confusion().at({entry[0], entry[1]}), entry[2]);
    counted += entry[2].get<int64_t>();
  }
  EXPECT_EQ(counted, kImages);
}

TEST_F(EvalOutput, TheTableHasEachClassAndTheWrongImagesInOrder) {
  const ProgramResult result = eval("table");
  ASSERT_EQ(result.status, 0) << result.err;
  const data::ClassificationReport report = expected();
  EXPECT_TRUE(contains(result.out, "top-1 " + data::accuracy_text(report.top1(), kImages))) << result.out;
  EXPECT_TRUE(contains(result.out, "top-5 " + data::accuracy_text(report.top5(), kImages))) << result.out;
  EXPECT_TRUE(contains(result.out, "macro average")) << result.out;
  EXPECT_TRUE(contains(result.out, "confusion (a row for each label")) << result.out;
  const std::vector<std::string> lines = lines_of(result.out);
  const auto title = std::find(lines.begin(), lines.end(), "wrong images, least confident first");
  ASSERT_NE(title, lines.end()) << result.out;
  double last = 0;
  int64_t wrong = 0;
  for (auto line = title + 1; line != lines.end(); ++line, ++wrong) {
    const double probability = std::stod(*line);
    EXPECT_GE(probability, last);
    EXPECT_TRUE(contains(*line, root_.string())) << *line;
    last = probability;
  }
  EXPECT_EQ(wrong, kImages - std::llround(report.top1() * kImages));
}

TEST_F(EvalOutput, PredictionsHaveARowForEachImageAndForFailures) {
  std::ofstream(root_ / "2/broken.png") << "\x89PNG\r\n\x1a\n";
  const ProgramResult result = eval("json");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(json_lines(result.out).at(0)["images"], kImages);
  const std::vector<std::string> rows = lines_of(content_of(root_ / "p.csv"));
  ASSERT_EQ(rows.size(), kImages + 2u);
  EXPECT_EQ(rows[0], "file,label,prediction,probability,label_probability,error");
  const std::vector<float> logits = read_npy(root_ / "l.npy").f32;
  ASSERT_EQ(logits.size(), (kImages + 1u) * kSmallModelClasses);
  for (size_t i = 0; i <= kImages; ++i) {
    const std::span<const float> row(logits.data() + i * kSmallModelClasses, kSmallModelClasses);
    if (contains(rows[i + 1], "broken.png")) {
      EXPECT_TRUE(contains(rows[i + 1], ",2,,,,")) << rows[i + 1];
      EXPECT_TRUE(std::isnan(row[0]) && std::isnan(row[kSmallModelClasses - 1]));
      continue;
    }
    const data::Prediction prediction = data::top_k(row, 1, "row").front();
    EXPECT_TRUE(contains(rows[i + 1], "," + std::to_string(prediction.index) + ",0.")) << rows[i + 1];
  }
}

TEST_F(EvalOutput, TheReportHasTheClassesAndTheWrongImages) {
  const fs::path page = scratch_folder() / "report.html";
  const ProgramResult result = run_program(
      {"eval", "-m", small_model(), root_, "--format", "json", "--logits", root_ / "l.npy", "--report", page});
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string html = content_of(page);
  const data::ClassificationReport report = expected();
  for (const int64_t label : report.classes()) {
    const std::string row =
        "<tr><td>" + std::to_string(label) + "</td><td>" + std::to_string(report.of_class(label).support) + "</td>";
    EXPECT_TRUE(contains(html, row)) << row;
  }
  EXPECT_FALSE(contains(html, "training images"));
  EXPECT_FALSE(contains(html, "Recipe"));
  EXPECT_TRUE(contains(html, "<td>vitrail eval -m "));
  size_t figures = 0;
  for (size_t at = html.find("<figure>"); at != html.npos; at = html.find("<figure>", at + 1)) ++figures;
  EXPECT_EQ(static_cast<int64_t>(figures), kImages - std::llround(report.top1() * kImages));
}

TEST_F(EvalOutput, AReportThatCannotBeWrittenIsAnErrorBeforeTheEvaluation) {
  const ProgramResult result = run_program(
      {"eval", "-m", small_model(), root_, "--report", "/nowhere/report.html", "--predictions", root_ / "p.csv"});
  EXPECT_FALSE(fs::exists(root_ / "p.csv"));
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "/nowhere/report.html")) << result.err;
}

}  // namespace
}  // namespace vitrail::testing
