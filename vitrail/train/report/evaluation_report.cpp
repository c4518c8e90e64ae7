// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/report/evaluation_report.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/train/objectives/classification/evaluation_internal.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/report/report_images_internal.h"
#include "vitrail/train/report/report_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {
namespace {

std::string name_of(const EvaluationReport& evaluation, int64_t label) {
  return evaluation.class_names.empty() ? std::to_string(label) : evaluation.class_names.at(static_cast<size_t>(label));
}

std::vector<MisclassifiedImage> worst_images(const EvaluationReport& evaluation) {
  std::vector<Misclassification> worst = evaluation.wrong;
  keep_worst(worst);
  std::vector<MisclassifiedImage> images;
  for (const Misclassification& m : worst) {
    images.push_back({evaluation.dataset->path(m.sample), name_of(evaluation, m.label),
                      name_of(evaluation, m.prediction), m.prediction_probability, m.label_probability,
                      make_thumbnail(evaluation.dataset->image(m.sample))});
  }
  return images;
}

// Only classes that are a label or a prediction have rows and columns.
void add_classes(const EvaluationReport& evaluation, Report& report) {
  const std::vector<int64_t> classes = evaluation.metrics->classes();
  report.confusion.assign(classes.size(), std::vector<int64_t>(classes.size()));
  for (const int64_t label : classes) {
    report.classes.push_back(name_of(evaluation, label));
    report.class_rows.push_back({report.classes.back(), 0, evaluation.metrics->of_class(label)});
  }
  const auto position = [&](int64_t label) {
    return static_cast<size_t>(std::lower_bound(classes.begin(), classes.end(), label) - classes.begin());
  };
  for (const auto& [pair, images] : evaluation.metrics->confusion())
    report.confusion[position(pair.first)][position(pair.second)] = images;
}

void add_metrics(const EvaluationReport& evaluation, const data::ClassificationReport& metrics, Report& report) {
  const auto fact_of = [&](const char* name, double fraction) {
    const data::Interval interval = data::wilson_interval(fraction, metrics.images());
    return std::pair(str(name, ", 95 % interval ", percent(interval.low), " to ", percent(interval.high)),
                     percent(fraction, 2));
  };
  report.facts = {fact_of("top-1", metrics.top1()),
                  fact_of("top-5", metrics.top5()),
                  {"images", std::to_string(metrics.images())},
                  {"macro average of F1", percent(metrics.macro_average().f1, 2)},
                  {"calibration error", percent(metrics.calibration_error(), 2)}};
  report.confusion_of = str(metrics.images(), " images");
  add_classes(evaluation, report);
  report.misclassified = worst_images(evaluation);
}

void add_metrics(const EvaluationReport& evaluation, const data::MultiLabelReport& metrics, Report& report) {
  const auto precision = [](std::optional<double> value) { return value ? percent(*value, 2) : "none"; };
  report.facts = {{"mean average precision over the classes", precision(metrics.macro_average_precision())},
                  {"average precision of all decisions", precision(metrics.micro_average_precision())},
                  {"macro average of F1", percent(metrics.macro_average().f1, 2)},
                  {"micro average of F1", percent(metrics.micro_average().f1, 2)},
                  {"images", std::to_string(metrics.images())}};
  report.confusion_of = str(metrics.images(), " images");
  report.shows_average_precision = true;
  for (int64_t c = 0; c < metrics.class_count(); ++c)
    report.class_rows.push_back({name_of(evaluation, c), 0, metrics.of_class(c), metrics.average_precision_of(c)});
}

}  // namespace

void write_evaluation_report(const std::filesystem::path& file, const EvaluationReport& evaluation) {
  Report report;
  report.title = evaluation.title;
  report.subtitle = evaluation.subtitle;
  if (evaluation.label_metrics) {
    add_metrics(evaluation, *evaluation.label_metrics, report);
  } else {
    add_metrics(evaluation, *evaluation.metrics, report);
  }
  report.environment = evaluation.environment;
  write_text(file, render_report(report));
}

}  // namespace vitrail::train
