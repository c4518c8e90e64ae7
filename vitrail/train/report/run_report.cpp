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
#include "vitrail/data/augment/interval_json_internal.h"
#include "vitrail/kernels/isa/isa.h"
#include "vitrail/train/objectives/class_weights_internal.h"
#include "vitrail/train/objectives/multi_label_internal.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/run/run_folder_internal.h"
#include "vitrail/train/run/unreadable_images_internal.h"

namespace vitrail::train {
namespace {

// 0.046415… → "0.0464"
std::string short_decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
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
std::string interval_text(double fraction, int64_t images, bool multi_label = false) {
  if (multi_label) return str(images, " images");
  const data::Interval interval = data::wilson_interval(fraction, images);
  return str("95 % interval ", percent(interval.low), " to ", percent(interval.high), ", ", images, " images");
}

std::vector<std::pair<std::string, std::string>> facts_of(const ReportInput& input) {
  const Counters& counters = *input.counters;
  std::vector<std::pair<std::string, std::string>> facts;
  const bool tested = counters.tested && input.data->test.dataset, several = input.data->multi_label;
  const MetricNames names = metric_names(several);
  if (tested) {
    const int64_t images = tested_images(counters, input.data->test.size());
    facts.push_back(
        {str(names.first_title, " on the test images, ", interval_text(counters.test_top1, images, several)),
         percent(counters.test_top1, 2)});
    if (several || input.data->classes.size() > 5) {
      facts.push_back(
          {str(names.second_title, " on the test images, ", interval_text(counters.test_top5, images, several)),
           percent(counters.test_top5, 2)});
    }
  }
  if (counters.best.top1 >= 0 && input.data->validation.dataset) {
    const std::string name = input.search ? str(names.first_title, " on the validation images, ")
                                          : str("best validation ", names.first_title, ", epoch ", counters.best_epoch,
                                                counters.best_is_average ? ", EMA weights, " : ", ");
    const int64_t images = validated_images(counters, input.data->validation.size());
    facts.push_back({name + interval_text(counters.best.top1, images, several), percent(counters.best.top1, 2)});
  }
  if (input.search && input.search->folds > 0) {
    const double top1 = input.search->held_out_fit().top1;
    facts.push_back(
        {str("top-1 in ", input.search->folds, "-fold cross-validation, ", interval_text(top1, input.search->samples)),
         percent(top1, 2)});
    facts.push_back({"C, the inverse strength of the L2 penalty", short_decimal(input.search->best)});
  }
  if (!counters.history.empty())
    facts.push_back(
        {"epochs", str(counters.history.back().epoch, input.finished ? "" : str(" of ", input.recipe->epochs))});
  facts.push_back({"training time", duration_text(counters.seconds)});
  facts.push_back({"parameters", with_thousands_separators(input.parameters)});
  facts.push_back({"training images", with_thousands_separators(input.data->train.size())});
  if (counters.skipped_images > 0)
    facts.push_back({"unreadable images skipped", with_thousands_separators(counters.skipped_images)});
  if (counters.skipped_steps > 0)
    facts.push_back({"non-finite steps skipped", with_thousands_separators(counters.skipped_steps)});
  return facts;
}

// A probe passes over the images once.
int64_t summary_epochs(const ReportInput& input) {
  if (input.search) return 1;
  return input.counters->history.empty() ? 0 : input.counters->history.back().epoch;
}

void write_summary(const std::filesystem::path& path, const ReportInput& input) {
  const Counters& counters = *input.counters;
  const bool several = input.data->multi_label;
  const MetricNames names = metric_names(several);
  nlohmann::ordered_json json{{"finished", input.finished},
                              {"epochs", summary_epochs(input)},
                              {"parameters", input.parameters},
                              {"training_images", input.data->train.size()},
                              {"seconds", counters.seconds},
                              {"skipped_images", counters.skipped_images},
                              {"skipped_steps", counters.skipped_steps}};
  if (input.data->validation.dataset) {
    const int64_t images = validated_images(counters, input.data->validation.size());
    json["held_out"] = {{"images", images}, {names.first, std::max(0.0, counters.best.top1)}};
    if (!several) json["held_out"]["top1_interval"] = data::interval_json(counters.best.top1, images);
    if (!input.search) {
      json["held_out"]["epoch"] = counters.best_epoch;
      json["held_out"]["averaged_weights"] = counters.best_is_average;
    }
  }
  if (counters.tested && input.data->test.dataset) {
    const int64_t images = tested_images(counters, input.data->test.size());
    json["test"] = {{"images", images}, {names.first, counters.test_top1}};
    if (!several) json["test"]["top1_interval"] = data::interval_json(counters.test_top1, images);
    json["test"][names.second] = counters.test_top5;
    if (!several) json["test"]["top5_interval"] = data::interval_json(counters.test_top5, images);
    json["test"]["loss"] = counters.test_loss;
  }
  if (input.search) {
    json["probe"] = {{"c", input.search->best}, {"folds", input.search->folds}};
    if (input.search->folds > 0) {
      const double top1 = input.search->held_out_fit().top1;
      json["probe"]["cross_validated_top1"] = top1;
      json["probe"]["cross_validated_top1_interval"] = data::interval_json(top1, input.search->samples);
      json["probe"]["cross_validated_images"] = input.search->samples;
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
  report.charts = input.search ? charts_of(*input.search)
                               : metric_charts(folder / "metrics.csv",
                                               input.data->multi_label ? "Mean average precision" : "Top-1 accuracy",
                                               !input.data->multi_label);
  remove_empty(report.charts);
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
