// SPDX-License-Identifier: Apache-2.0
// Contents of report.html and summary.json, from the counters of a run, its metrics.csv and an evaluation.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "vitrail/base/error.h"
#include "vitrail/base/processor_name_internal.h"
#include "vitrail/data/metrics.h"
#include "vitrail/kernels/isa/isa.h"
#include "vitrail/train/class_weights_internal.h"
#include "vitrail/train/html_internal.h"
#include "vitrail/train/multi_label_internal.h"
#include "vitrail/train/run_folder_internal.h"

namespace vitrail::train {
namespace {

constexpr size_t kMaxPoints = 400;  // per curve, about the resolution of a chart

// 5717416 → "5,717,416"
std::string with_thousands_separators(int64_t number) {
  std::string text = std::to_string(number);
  for (auto i = static_cast<int64_t>(text.size()) - 3; i > 0; i -= 3) text.insert(static_cast<size_t>(i), ",");
  return text;
}

// 0.046415… → "0.0464"
std::string short_decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string duration(double seconds) {
  char text[32];
  const auto total = static_cast<int64_t>(seconds);
  if (total >= 3600) {
    std::snprintf(text, sizeof text, "%d h %02d min", static_cast<int>(total / 3600),
                  static_cast<int>(total / 60 % 60));
  } else if (total >= 60) {
    std::snprintf(text, sizeof text, "%d min %02d s", static_cast<int>(total / 60), static_cast<int>(total % 60));
  } else {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  }
  return text;
}

// The values of a row of metrics.csv that the charts show.
struct Point {
  double epoch, loss, top1, rate, minutes;
};

// The rows of metrics.csv by event: "train", "val", "val_ema".
std::map<std::string, std::vector<Point>> read_metrics(const std::filesystem::path& csv) {
  std::map<std::string, std::vector<Point>> points;
  std::ifstream file(csv);
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string event, field;
    std::getline(fields, event, ',');
    std::vector<double> values;
    while (std::getline(fields, field, ',')) values.push_back(std::strtod(field.c_str(), nullptr));
    if (values.size() == 10) points[event].push_back({values[1], values[2], values[3], values[5], values[9] / 60});
  }
  return points;
}

// Samples the points evenly down to kMaxPoints.
Curve make_curve(const std::string& name, const std::vector<Point>& points, double Point::*x, double Point::*y) {
  Curve curve{name, {}, {}};
  const size_t stride = points.size() / kMaxPoints + 1;
  for (size_t i = 0; i < points.size(); i += stride) {
    curve.x.push_back(points[i].*x);
    curve.y.push_back(points[i].*y);
  }
  return curve;
}

std::vector<Chart> charts_of(const std::filesystem::path& csv, bool multi_label) {
  const auto points = read_metrics(csv);
  auto curves = [&](double Point::*x, double Point::*y) {
    std::vector<Curve> shown;
    for (const auto& [event, name] : {std::pair{"train", "training"}, std::pair{"val", "validation"},
                                      std::pair{"val_ema", "validation, EMA weights"}}) {
      if (const auto found = points.find(event); found != points.end())
        shown.push_back(make_curve(name, found->second, x, y));
    }
    if (multi_label && y == &Point::top1) std::erase_if(shown, [](const Curve& c) { return c.name == "training"; });
    return shown;
  };
  const std::string accuracy = multi_label ? "Mean average precision" : "Top-1 accuracy";
  std::vector<Curve> rate;
  if (const auto found = points.find("train"); found != points.end())
    rate.push_back(make_curve("learning rate", found->second, &Point::epoch, &Point::rate));
  return {{"Loss", "epoch", false, curves(&Point::epoch, &Point::loss)},
          {accuracy, "epoch", true, curves(&Point::epoch, &Point::top1)},
          {accuracy + " against time", "minutes", true, curves(&Point::minutes, &Point::top1)},
          {"Learning rate", "epoch", false, rate}};
}

// The curves of a probe: how well held-out images are classified with each strength of the penalty.
std::vector<Chart> charts_of(const analysis::StrengthSearch& search) {
  Curve loss{"cross-validation", {}, {}}, top1 = loss;
  for (size_t i = 0; i < search.held_out.size(); ++i) {
    for (Curve* curve : {&loss, &top1}) curve->x.push_back(std::log10(search.c[i]));
    loss.y.push_back(search.held_out[i].loss);
    top1.y.push_back(search.held_out[i].top1);
  }
  return {{"Held-out loss", "log10 C", false, {loss}}, {"Held-out top-1 accuracy", "log10 C", true, {top1}}};
}

// A chart needs a curve, which needs two points.
bool is_empty(const Chart& chart) {
  return std::none_of(chart.curves.begin(), chart.curves.end(), [](const Curve& curve) {
    return std::count_if(curve.y.begin(), curve.y.end(), [](double y) { return std::isfinite(y); }) >= 2;
  });
}

std::vector<MisclassifiedImage> misclassified_images(const ReportInput& input) {
  std::vector<MisclassifiedImage> images;
  const data::Dataset* dataset = input.subset->dataset.get();
  if (!dataset) return images;
  const std::vector<std::string>& classes = input.data->classes;
  for (const Misclassification& m : input.evaluation->worst) {
    images.push_back({dataset->path(m.sample), classes[static_cast<size_t>(m.label)],
                      classes[static_cast<size_t>(m.prediction)], m.prediction_probability, m.label_probability,
                      make_thumbnail(dataset->image(m.sample))});
  }
  return images;
}

std::vector<ClassRow> class_rows(const ReportInput& input) {
  const auto& confusion = input.evaluation->confusion;
  if (input.evaluation->images == 0) return {};
  const std::vector<int64_t> training = class_counts(input.data->train, input.data->classes.size());
  std::vector<ClassRow> rows;
  if (const auto& labels = input.evaluation->labels) {
    for (int64_t c = 0; c < labels->class_count(); ++c) {
      const auto i = static_cast<size_t>(c);
      rows.push_back({input.data->classes[i], training[i], labels->of_class(c), labels->average_precision_of(c)});
    }
  }
  for (size_t c = 0; c < confusion.size(); ++c) {
    int64_t support = 0, predicted = 0;
    for (size_t other = 0; other < confusion.size(); ++other) {
      support += confusion[c][other];
      predicted += confusion[other][c];
    }
    rows.push_back({input.data->classes[c], training[c], data::class_metrics(confusion[c][c], support, predicted)});
  }
  return rows;
}

// "95 % interval 86.3 to 98.3 %, 60 images"
std::string interval_text(double fraction, const Subset& subset, bool multi_label = false) {
  if (multi_label) return str(subset.size(), " images");
  const data::Interval interval = data::wilson_interval(fraction, subset.size());
  return str("95 % interval ", percent(interval.low), " to ", percent(interval.high), ", ", subset.size(), " images");
}

std::vector<std::pair<std::string, std::string>> facts_of(const ReportInput& input) {
  const Counters& counters = *input.counters;
  std::vector<std::pair<std::string, std::string>> facts;
  const bool tested = counters.tested && input.data->test.dataset, several = input.data->multi_label;
  const MetricNames names = metric_names(several);
  if (tested) {
    facts.push_back(
        {str(names.first_title, " on the test images, ", interval_text(counters.test_top1, input.data->test, several)),
         percent(counters.test_top1, 2)});
    facts.push_back({str(names.second_title, " on the test images"), percent(counters.test_top5, 2)});
  }
  if (counters.best.top1 >= 0 && input.data->validation.dataset)
    facts.push_back({str("best validation ", names.first_title, ", epoch ", counters.best_epoch,
                         counters.best_is_average ? ", EMA weights, " : ", ",
                         interval_text(counters.best.top1, input.data->validation, several)),
                     percent(counters.best.top1, 2)});
  if (input.search && input.search->folds > 0) {
    const double top1 = input.search->held_out_fit().top1;
    facts.push_back(
        {str("top-1 in ", input.search->folds, "-fold cross-validation, ", interval_text(top1, input.data->train)),
         percent(top1, 2)});
    facts.push_back({"C, the inverse strength of the L2 penalty", short_decimal(input.search->best)});
  }
  if (!counters.history.empty())
    facts.push_back(
        {"epochs", str(counters.history.back().epoch, input.finished ? "" : str(" of ", input.recipe->epochs))});
  facts.push_back({"training time", duration(counters.seconds)});
  facts.push_back({"parameters", with_thousands_separators(input.parameters)});
  facts.push_back({"training images", with_thousands_separators(input.data->train.size())});
  if (counters.skipped_images > 0)
    facts.push_back({"unreadable images skipped", with_thousands_separators(counters.skipped_images)});
  if (counters.skipped_steps > 0)
    facts.push_back({"non-finite steps skipped", with_thousands_separators(counters.skipped_steps)});
  return facts;
}

nlohmann::ordered_json interval_of(double fraction, int64_t images) {
  const data::Interval interval = data::wilson_interval(fraction, images);
  return {interval.low, interval.high};
}

void write_summary(const std::filesystem::path& path, const ReportInput& input) {
  const Counters& counters = *input.counters;
  const bool several = input.data->multi_label;
  const MetricNames names = metric_names(several);
  nlohmann::ordered_json json{{"finished", input.finished},
                              {"epochs", counters.history.empty() ? 0 : counters.history.back().epoch},
                              {"parameters", input.parameters},
                              {"training_images", input.data->train.size()},
                              {"seconds", counters.seconds},
                              {"skipped_images", counters.skipped_images},
                              {"skipped_steps", counters.skipped_steps}};
  if (input.data->validation.dataset) {
    json["held_out"] = {{"images", input.data->validation.size()}, {names.first, std::max(0.0, counters.best.top1)}};
    if (!several) json["held_out"]["top1_interval"] = interval_of(counters.best.top1, input.data->validation.size());
    json["held_out"]["epoch"] = counters.best_epoch;
    json["held_out"]["averaged_weights"] = counters.best_is_average;
  }
  if (counters.tested && input.data->test.dataset) {
    json["test"] = {{"images", input.data->test.size()}, {names.first, counters.test_top1}};
    if (!several) json["test"]["top1_interval"] = interval_of(counters.test_top1, input.data->test.size());
    json["test"][names.second] = counters.test_top5;
    json["test"]["loss"] = counters.test_loss;
  }
  if (input.search) {
    json["probe"] = {{"c", input.search->best}, {"folds", input.search->folds}};
    if (input.search->folds > 0) {
      json["probe"]["cross_validated_top1"] = input.search->held_out_fit().top1;
      json["probe"]["cross_validated_loss"] = input.search->held_out_fit().loss;
    }
  }
  if (input.processes > 1) {
    json["exchange"] = {{"processes", input.processes},
                        {"seconds", counters.communication.seconds},
                        {"overlapped_seconds", counters.communication.overlapped},
                        {"waited_seconds", counters.communication.waited}};
  }
  write_text(path, json.dump(2) + "\n");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> environment_of(const TrainerOptions& options, int threads) {
  auto environment = options.environment;
  environment.emplace_back(
      "processor", str(processor_name(), ", ", kernels::name_of(kernels::active_isa()), ", ", threads, " threads"));
  return environment;
}

void write_report(const std::filesystem::path& folder, const ReportInput& input) {
  Report report;
  std::filesystem::path name = folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
  report.title = name.string().empty() || name == "." ? "Training run" : name.string();
  report.subtitle =
      str(input.config->architecture, " on ", input.recipe->data.train, input.finished ? "" : " — still running");
  report.facts = facts_of(input);
  report.charts = input.search ? charts_of(*input.search) : charts_of(folder / "metrics.csv", input.data->multi_label);
  std::erase_if(report.charts, is_empty);
  report.examples = input.images->examples;
  report.augmented = input.images->augmented;
  report.class_rows = class_rows(input);
  report.shows_average_precision = input.data->multi_label;
  report.classes = input.data->classes;
  if (input.evaluation->images > 0) report.confusion = input.evaluation->confusion;
  report.confusion_of = input.subset->name;
  report.misclassified = misclassified_images(input);
  report.recipe = write_recipe(*input.recipe);
  report.environment = input.environment;
  write_text(folder / "report.html", render_report(report));
  write_summary(folder / "summary.json", input);
  std::error_code error;
  if (std::filesystem::is_directory(folder / "model", error)) write_text(folder / "model/README.md", model_card(input));
}

}  // namespace vitrail::train
