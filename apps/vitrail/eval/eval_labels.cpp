// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/eval/eval_labels.h"

#include <algorithm>
#include <limits>

#include "apps/vitrail/eval/eval_output.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/base/csv.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/train/report/evaluation_report.h"

#include "vitrail/data/augment/interval_json_internal.h"

namespace vitrail::app {
namespace {

std::string average_precision_text(std::optional<double> value) {
  return value ? fmt::format("{:.4f}", *value) : "";  // empty: no images of the class
}

nlohmann::ordered_json number_or_null(std::optional<double> value) {
  return value ? nlohmann::ordered_json(*value) : nullptr;
}

void print_row(const std::string& name, size_t width, const data::ClassMetrics& metrics,
               std::optional<double> average_precision) {
  print_output("{}  {:>7}  {:>17}  {:>9.4f}  {:>6.4f}  {:>6.4f}\n", padded(escaped(name), width), metrics.support,
               average_precision_text(average_precision), metrics.precision, metrics.recall, metrics.f1);
}

}  // namespace

LabelEvaluation::LabelEvaluation(const LabelEvaluationOptions& options, const data::Dataset& dataset, int64_t classes,
                                 const std::vector<std::string>& names)
    : options_(options),
      dataset_(dataset),
      names_(names),
      report_(classes),
      nan_row_(static_cast<size_t>(classes), std::numeric_limits<float>::quiet_NaN()) {
  if (!options.logits.empty()) logits_.emplace(options.logits, DType::f32, std::span(&classes, 1), dataset.size());
  if (!options.report.empty()) const AtomicFile writable(options.report);  // throws before the images are read
  if (options.predictions.empty()) return;
  for (const std::string& name : names)
    if (name.find('|') != name.npos)
      throw Error(options.predictions, "class names without '|', which separates them", "'" + name + "'");
  predictions_.emplace(options.predictions);
  std::string header = "file,labels,predictions,";
  for (int64_t c = 0; c < classes; ++c) header += csv_field(name_of(c)) + ",";
  predictions_->write(header + "error\n");
}

std::string LabelEvaluation::name_of(int64_t label) const {
  return names_.empty() ? std::to_string(label) : names_[static_cast<size_t>(label)];
}

std::string LabelEvaluation::joined(const std::vector<int64_t>& labels) const {
  return csv_field(join(labels, "|", [&](int64_t label) { return name_of(label); }));
}

void LabelEvaluation::add(const Outcome& outcome) {
  if (!outcome.error.empty()) return fail(outcome, outcome.error);
  any_logits_ = true;
  const std::span<const float> row(outcome.result().data<float>(), nan_row_.size());
  const std::vector<int64_t> labels = dataset_.labels(static_cast<int64_t>(outcome.index));
  try {
    report_.add(row, labels, outcome.path());
  } catch (const Error& error) {
    print_error(with_path(outcome.path(), error.what()));
    return fail(outcome, error.what(), row.data());
  }
  if (logits_) logits_->write_rows(row.data(), 1);
  if (predictions_) add_prediction(outcome.path(), labels, row);
}

void LabelEvaluation::add_prediction(const std::string& path, const std::vector<int64_t>& labels,
                                     std::span<const float> row) {
  std::vector<int64_t> predicted;
  std::string probabilities;
  for (size_t c = 0; c < row.size(); ++c) {
    if (row[c] > 0) predicted.push_back(static_cast<int64_t>(c));
    probabilities += fmt::format("{:.6g},", data::sigmoid(row[c]));
  }
  predictions_->write(fmt::format("{},{},{},{}\n", csv_field(path), joined(labels), joined(predicted), probabilities));
}

void LabelEvaluation::fail(const Outcome& outcome, const std::string& error, const float* row) {
  ++failures_;
  if (logits_) logits_->write_rows(row != nullptr ? row : nan_row_.data(), 1);
  if (!predictions_) return;
  const std::vector<int64_t> labels = dataset_.labels(static_cast<int64_t>(outcome.index));
  predictions_->write(fmt::format("{},{},,{}{}\n", csv_field(outcome.path()), joined(labels),
                                  std::string(nan_row_.size(), ','), csv_field(error)));
}

void LabelEvaluation::finish(double seconds) {
  if (logits_ && any_logits_) logits_->finish();
  if (predictions_ && any_logits_) predictions_->commit();
  if (report_.images() == 0) throw Error(options_.dataset, "images that can be read", "none");
  if (!options_.report.empty()) write_report();
  const double images_per_second = static_cast<double>(report_.images()) / seconds;
  if (options_.format == "json") {
    print_json_object(images_per_second);
  } else {
    print_table(images_per_second);
  }
}

void LabelEvaluation::write_report() const {
  train::write_evaluation_report(
      options_.report, {.title = "Evaluation",
                        .subtitle = data::summary(dataset_, options_.dataset),
                        .label_metrics = &report_,
                        .dataset = &dataset_,
                        .class_names = names_,
                        .environment = {{"command", options_.command_line}, {"version", "vitrail " VITRAIL_VERSION}}});
}

void LabelEvaluation::print_table(double images_per_second) const {
  const auto text = [](std::optional<double> value) { return value ? average_precision_text(value) : "none"; };
  print_output("mean average precision {} (macro), {} (micro)\nall labels right: {}\n{:.1f} images/s\n",
               text(report_.macro_average_precision()), text(report_.micro_average_precision()),
               data::accuracy_text(report_.exact(), report_.images()), images_per_second);
  size_t width = std::string("macro average").size();
  for (int64_t c = 0; c < report_.class_count(); ++c) width = std::max(width, width_of(escaped(name_of(c))));
  print_output("\n{}  {:>7}  {:>17}  {:>9}  {:>6}  {:>6}\n", padded("class", width), "images", "average precision",
               "precision", "recall", "F1");
  for (int64_t c = 0; c < report_.class_count(); ++c)
    print_row(name_of(c), width, report_.of_class(c), report_.average_precision_of(c));
  print_row("macro average", width, report_.macro_average(), report_.macro_average_precision());
  print_row("micro average", width, report_.micro_average(), report_.micro_average_precision());
}

void LabelEvaluation::print_json_object(double images_per_second) const {
  nlohmann::ordered_json json{{"images", report_.images()},
                              {"activation", "sigmoid"},
                              {"map", number_or_null(report_.macro_average_precision())},
                              {"map_micro", number_or_null(report_.micro_average_precision())},
                              {"exact", report_.exact()},
                              {"exact_interval", data::interval_json(report_.exact(), report_.images())},
                              {"macro", json_of(report_.macro_average())},
                              {"micro", json_of(report_.micro_average())},
                              {"images_per_second", images_per_second}};
  json["classes"] = nlohmann::ordered_json::array();
  for (int64_t c = 0; c < report_.class_count(); ++c) {
    nlohmann::ordered_json entry{{"index", c}};
    if (!names_.empty()) entry["label"] = name_of(c);
    entry["average_precision"] = number_or_null(report_.average_precision_of(c));
    entry.update(json_of(report_.of_class(c)));
    json["classes"].push_back(entry);
  }
  print_json(json);
}

}  // namespace vitrail::app
