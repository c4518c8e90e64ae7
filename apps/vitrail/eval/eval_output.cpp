// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/eval/eval_output.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/vitrail/output/output.h"
#include "vitrail/base/csv.h"
#include "vitrail/data/augment/interval_json_internal.h"

namespace vitrail::app {
namespace {

constexpr size_t kMaxMatrixClasses = 20;  // a wider confusion matrix does not fit a terminal
constexpr size_t kMaxListed = 20;         // wrong images and confused classes

std::string class_name(const std::vector<std::string>& names, int64_t index) {
  return names.empty() ? std::to_string(index) : names[static_cast<size_t>(index)];
}

void print_row(const std::string& name, size_t width, const data::ClassMetrics& metrics) {
  print_output("{}  {:>7}  {:>9.4f}  {:>6.4f}  {:>6.4f}\n", padded(escaped(name), width), metrics.support,
               metrics.precision, metrics.recall, metrics.f1);
}

void print_classes(const EvaluationOutput& output) {
  const data::ClassificationReport& report = *output.report;
  size_t width = std::string("weighted average").size();
  const std::vector<int64_t> classes = report.classes();
  for (const int64_t label : classes) width = std::max(width, width_of(escaped(class_name(*output.names, label))));
  print_output("\n{}  {:>7}  {:>9}  {:>6}  {:>6}\n", padded("class", width), "images", "precision", "recall", "F1");
  for (const int64_t label : classes) print_row(class_name(*output.names, label), width, report.of_class(label));
  print_row("macro average", width, report.macro_average());
  print_row("weighted average", width, report.weighted_average());
}

void print_matrix(const EvaluationOutput& output, const std::vector<int64_t>& classes) {
  const auto& confusion = output.report->confusion();
  size_t width = 0;
  for (const int64_t label : classes) width = std::max(width, width_of(escaped(class_name(*output.names, label))));
  print_output("\nconfusion (a row for each label, a column for each prediction)\n");
  for (const int64_t label : classes) {
    std::string row = padded(escaped(class_name(*output.names, label)), width);
    for (const int64_t prediction : classes) {
      const auto found = confusion.find({label, prediction});
      row += fmt::format("  {:>5}", found == confusion.end() ? 0 : found->second);
    }
    print_output("{}\n", row);
  }
}

void print_confused_pairs(const EvaluationOutput& output) {
  std::vector<std::pair<int64_t, std::pair<int64_t, int64_t>>> pairs;  // −images, label and prediction
  for (const auto& [classes, images] : output.report->confusion()) {
    if (classes.first != classes.second) pairs.emplace_back(-images, classes);
  }
  if (pairs.empty()) return;
  std::sort(pairs.begin(), pairs.end());
  print_output("\nmost confused classes\n");
  for (size_t i = 0; i < std::min(pairs.size(), kMaxListed); ++i) {
    print_output("{:>5}  {} as {}\n", -pairs[i].first, escaped(class_name(*output.names, pairs[i].second.first)),
                 escaped(class_name(*output.names, pairs[i].second.second)));
  }
}

void print_wrong(const EvaluationOutput& output) {
  if (output.wrong.empty()) return;
  print_output("\nwrong images, least confident first\n");
  for (size_t i = 0; i < std::min(output.wrong.size(), kMaxListed); ++i) {
    const WrongImage& image = output.wrong[i];
    print_output("{:>6.1f} %  {} (is {})  {}\n", 100 * image.prediction.prediction_probability,
                 escaped(class_name(*output.names, image.prediction.prediction)),
                 escaped(class_name(*output.names, image.prediction.label)), escaped(image.path));
  }
  if (output.wrong.size() > kMaxListed)
    print_output("… {} more; --predictions FILE.csv has all\n", output.wrong.size() - kMaxListed);
}

}  // namespace

nlohmann::ordered_json json_of(const data::ClassMetrics& metrics) {
  return {
      {"precision", metrics.precision}, {"recall", metrics.recall}, {"f1", metrics.f1}, {"images", metrics.support}};
}

void print_report(const nlohmann::ordered_json& report, bool json) {
  if (json) return print_json(report);
  for (const auto& [name, value] : report.items()) print_output("{:12s} {}\n", name, value.dump());
}

void print_evaluation_table(const EvaluationOutput& output) {
  const data::ClassificationReport& report = *output.report;
  print_output("top-1 {}\n", data::accuracy_text(report.top1(), report.images()));
  // The top-5 accuracy of at most five classes is always 100 %.
  if (report.num_classes() > 5) print_output("top-5 {}\n", data::accuracy_text(report.top5(), report.images()));
  print_output("calibration error {:.4f}\n{:.1f} images/s\n", report.calibration_error(), output.images_per_second);
  print_classes(output);
  const std::vector<int64_t> classes = report.classes();
  if (classes.size() <= kMaxMatrixClasses) {
    print_matrix(output, classes);
  } else {
    print_confused_pairs(output);
  }
  print_wrong(output);
}

void print_evaluation_json(const EvaluationOutput& output) {
  const data::ClassificationReport& report = *output.report;
  nlohmann::ordered_json json{{"images", report.images()},
                              {"top1", report.top1()},
                              {"top1_interval", data::interval_json(report.top1(), report.images())},
                              {"top5", report.top5()},
                              {"top5_interval", data::interval_json(report.top5(), report.images())},
                              {"calibration_error", report.calibration_error()},
                              {"macro", json_of(report.macro_average())},
                              {"weighted", json_of(report.weighted_average())},
                              {"images_per_second", output.images_per_second}};
  json["classes"] = nlohmann::ordered_json::array();
  for (const int64_t label : report.classes()) {
    nlohmann::ordered_json entry{{"index", label}};
    if (!output.names->empty()) entry["label"] = class_name(*output.names, label);
    entry.update(json_of(report.of_class(label)));
    json["classes"].push_back(entry);
  }
  json["confusion"] = nlohmann::ordered_json::array();  // label, prediction, images
  for (const auto& [classes, images] : report.confusion()) {
    json["confusion"].push_back({classes.first, classes.second, images});
  }
  print_json(json);
}

PredictionsFile::PredictionsFile(const std::string& path, const std::vector<std::string>& names)
    : file_(path), names_(names) {
  file_.write("file,label,prediction,probability,label_probability,error\n");
}

void PredictionsFile::add(const std::string& path, int64_t label, std::span<const float> logits) {
  const std::vector<float> probabilities = data::softmax(logits, path);
  const data::Prediction prediction = data::top_k(logits, 1, path).front();
  file_.write(fmt::format("{},{},{},{:.6g},{:.6g},\n", csv_field(path), csv_field(class_name(names_, label)),
                          csv_field(class_name(names_, prediction.index)), prediction.probability,
                          probabilities[static_cast<size_t>(label)]));
}

void PredictionsFile::add_failure(const std::string& path, int64_t label, const std::string& error) {
  file_.write(fmt::format("{},{},,,,{}\n", csv_field(path), csv_field(class_name(names_, label)), csv_field(error)));
}

void PredictionsFile::finish() { file_.commit(); }

}  // namespace vitrail::app
