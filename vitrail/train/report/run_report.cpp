// SPDX-License-Identifier: Apache-2.0
// Contents of report.html and summary.json, from the counters of a run, its metrics.csv and an evaluation.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/base/processor_name_internal.h"
#include "vitrail/base/utc_time_internal.h"
#include "vitrail/data/augment/interval_json_internal.h"
#include "vitrail/kernels/isa/isa.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {
namespace {

std::pair<std::string, std::string> fact_of(const std::string& name, const Score& score) {
  switch (score.unit) {
    case ScoreUnit::share:
      return {name + interval_text(score.value, score.images), percent(score.value, 2)};
    case ScoreUnit::percent:
      return {str(name, ", ", score.images, " images"), percent(score.value, 2)};
    case ScoreUnit::fraction:
      break;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", score.value);
  return {name, text};
}

// The score of the kept weights on the validation images; 0 before the first validation.
Score best_of(const ReportInput& input) {
  const Counters& counters = *input.counters;
  return {input.metrics->each.front(), std::max(0.0, counters.best.score),
          validated_images(counters, input.images.validation)};
}

bool is_tested(const ReportInput& input) { return input.counters->tested && input.images.test > 0; }

// Without the scores.
std::vector<std::pair<std::string, std::string>> run_facts(const ReportInput& input) {
  const Counters& counters = *input.counters;
  std::vector<std::pair<std::string, std::string>> facts;
  if (!counters.history.empty())
    facts.push_back(
        {"epochs", str(counters.history.back().epoch, input.finished ? "" : str(" of ", input.recipe->epochs))});
  facts.push_back({"training time", duration_text(counters.seconds)});
  facts.push_back({"parameters", with_thousands_separators(input.parameters)});
  facts.push_back({"training images", with_thousands_separators(input.images.training)});
  if (input.images.validation > 0)
    facts.push_back({"validation images", with_thousands_separators(input.images.validation)});
  if (counters.retrained && counters.retrained->epochs > 0)
    facts.push_back({"saved model: trained again on all images, epochs", str(counters.retrained->epochs)});
  else if (counters.retrained)
    facts.push_back({"saved model: the start, computed again from images", str(counters.retrained->images)});
  if (input.images.test > 0) facts.push_back({"test images", with_thousands_separators(input.images.test)});
  if (counters.skipped_images > 0)
    facts.push_back({"unreadable images skipped", with_thousands_separators(counters.skipped_images)});
  if (counters.skipped_steps > 0)
    facts.push_back({"non-finite steps skipped", with_thousands_separators(counters.skipped_steps)});
  return facts;
}

void add_score(nlohmann::ordered_json& json, const Score& score) {
  json[score.name] = score.value;
  if (score.unit == ScoreUnit::share) json[score.name + "_interval"] = data::interval_json(score.value, score.images);
}

void write_summary(const std::filesystem::path& path, const ReportInput& input, const nlohmann::ordered_json& more) {
  const Counters& counters = *input.counters;
  const int64_t epochs_of_solution = objective_of(*input.recipe).solves ? 1 : 0;  // it passes over the images once
  nlohmann::ordered_json json{{"finished", input.finished},
                              {"epochs", counters.history.empty() ? epochs_of_solution : counters.history.back().epoch},
                              {"parameters", input.parameters},
                              {"training_images", input.images.training},
                              {"seconds", counters.seconds},
                              {"skipped_images", counters.skipped_images},
                              {"skipped_steps", counters.skipped_steps}};
  if (input.images.validation > 0) {
    const Score best = best_of(input);
    json["held_out"] = {{"images", best.images}};
    add_score(json["held_out"], best);
    if (input.metrics->loss_in_summary) json["held_out"]["loss"] = counters.best.loss;
    if (counters.best_epoch > 0) {
      json["held_out"]["epoch"] = counters.best_epoch;
      json["held_out"]["averaged_weights"] = counters.best_is_average;
    }
  }
  if (counters.retrained)
    json["retrained"] = {{"epochs", counters.retrained->epochs}, {"images", counters.retrained->images}};
  for (const Score& score : counters.baselines) json["baselines"][score.name] = score.value;
  if (is_tested(input)) {
    const Evaluation test = tested(counters, input.images.test);
    json["test"] = {{"images", test.images}};
    for (const Score& score : test.scores) add_score(json["test"], score);
    json["test"]["loss"] = test.loss;
  }
  if (!more.is_null()) json.update(more);
  if (input.processes > 1) {
    json["exchange"] = {{"processes", input.processes},
                        {"seconds", counters.communication.seconds},
                        {"overlapped_seconds", counters.communication.overlapped},
                        {"waited_seconds", counters.communication.waited}};
  }
  write_text(path, json.dump(2) + "\n");
}

}  // namespace

std::string interval_text(double share, int64_t images) {
  const data::Interval interval = data::wilson_interval(share, images);
  return str(", 95 % interval ", percent(interval.low), " to ", percent(interval.high), ", ", images, " images");
}

std::vector<std::pair<std::string, std::string>> environment_of(const TrainerOptions& options, int threads) {
  auto environment = options.environment;
  environment.emplace_back(
      "processor", str(processor_name(), ", ", kernels::name_of(kernels::active_isa()), ", ", threads, " threads"));
  return environment;
}

std::vector<std::pair<std::string, std::string>> score_facts(const ReportInput& input) {
  const Counters& counters = *input.counters;
  std::vector<std::pair<std::string, std::string>> facts;
  if (is_tested(input)) {
    const Evaluation test = tested(counters, input.images.test);
    for (size_t i = 0; i < std::min(input.metrics->in_report, test.scores.size()); ++i)
      facts.push_back(fact_of(test.scores[i].title + " on the test images", test.scores[i]));
  }
  if (counters.best.score < 0 || input.images.validation == 0) return facts;
  const std::string& title = input.metrics->each.front().title;
  facts.push_back(fact_of(counters.best_epoch > 0 ? str("best validation ", title, ", epoch ", counters.best_epoch,
                                                        counters.best_is_average ? ", EMA weights" : "")
                                                  : title + " on the validation images",
                          best_of(input)));
  for (const Score& score : counters.baselines)
    facts.push_back(fact_of(score.title + " of the features before training, on the same images", score));
  return facts;
}

void write_report(const std::filesystem::path& folder, const ReportInput& input) {
  Report report;
  std::filesystem::path name = folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
  report.title = name.string().empty() || name == "." ? "Training run" : name.string();
  report.subtitle = str(input.subject, " on ", input.recipe->data.train, input.finished ? "" : " — still running");
  report.facts = score_facts(input);
  if (input.add_section) input.add_section(report);
  const auto facts = run_facts(input);
  report.facts.insert(report.facts.end(), facts.begin(), facts.end());
  if (report.charts.empty()) report.charts = metric_charts(folder / "metrics.csv", *input.metrics);
  remove_empty(report.charts);
  report.recipe = write_recipe(*input.recipe);
  report.environment = input.environment;
  report.environment.insert(report.environment.begin(), {"date", utc_time()});
  write_text(folder / "report.html", render_report(report));
  write_summary(folder / "summary.json", input, report.summary);
  std::error_code error;
  if (std::filesystem::is_directory(folder / "model", error))
    write_text(folder / "model/README.md", input.model_card(input));
}

}  // namespace vitrail::train
