// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/counters_internal.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/train/recipe/checked_json_internal.h"

namespace vitrail::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMaxSeconds = 1e10;  // some 300 years

Json sums_to_json(const RunningSums& sums) {
  return {sums.loss, sums.correct, sums.images, sums.gradient_norm, sums.steps};
}

RunningSums sums_from_json(const Json& json, const std::string& name) {
  const CheckedArray values(json, name, 5);
  RunningSums sums;
  sums.loss = values.finite(0);
  sums.images = values.count(2);
  sums.correct = values.count(1, sums.images);
  sums.gradient_norm = values.finite(3);
  sums.steps = values.count(4);
  return sums;
}

constexpr size_t kMinScores = 2;  // that a checkpoint has; missing ones are 0

std::string key_of(const std::string& prefix, size_t score) {
  return prefix + (score == 0 ? "_top1" : score == 1 ? "_top5" : str("_score", score + 1));
}

double value_of(const Evaluation& evaluation, size_t score) {
  return score < evaluation.scores.size() ? evaluation.scores[score].value : 0;
}

size_t count_of(const Evaluation& evaluation) { return std::max(evaluation.scores.size(), kMinScores); }

void add_evaluation(Json& json, const std::string& prefix, const Evaluation& evaluation) {
  json[prefix + "_loss"] = evaluation.loss;
  for (size_t i = 0; i < count_of(evaluation); ++i) json[key_of(prefix, i)] = value_of(evaluation, i);
}

Json epoch_to_json(const EpochResult& e) {
  Json json{{"epoch", e.epoch}, {"step", e.step}, {"train_loss", e.train.loss}, {"train_top1", value_of(e.train, 0)}};
  add_evaluation(json, "val", e.validation.value_or(Evaluation{}));
  json["val_images"] = e.validation ? e.validation->images : 0;
  add_evaluation(json, "ema", e.average.value_or(Evaluation{}));
  json["validated"] = e.validation.has_value();
  json["has_ema"] = e.average.has_value();
  json["best"] = e.best;
  json["seconds"] = e.seconds;
  return json;
}

Evaluation evaluation_from(const CheckedObject& values, const std::string& prefix, int64_t images,
                           const std::vector<Metric>& metrics) {
  std::vector<double> scores;
  for (size_t i = 0; i < metrics.size(); ++i) scores.push_back(values.number(key_of(prefix, i), 0, 1));
  return {values.number(prefix + "_loss"), images, scores_of(metrics, scores, images)};
}

EpochResult epoch_from_json(const Json& json, const std::vector<Metric>& metrics) {
  const CheckedObject values(json, "history");
  EpochResult e;
  e.epoch = values.count("epoch");
  e.step = values.count("step");
  e.train.loss = values.number("train_loss");
  e.train.scores = scores_of(metrics, {values.number("train_top1", 0, 1)}, 0);
  const int64_t images = json.contains("val_images") ? values.count("val_images") : 0;  // absent in old checkpoints
  if (values.boolean("validated")) e.validation = evaluation_from(values, "val", images, metrics);
  if (values.boolean("has_ema")) e.average = evaluation_from(values, "ema", images, metrics);
  e.best = values.boolean("best");
  e.seconds = values.finite("seconds", 0, kMaxSeconds);
  return e;
}

Json test_to_json(const Evaluation& test) {
  Json json = Json::array({test.loss});
  for (size_t i = 0; i < count_of(test); ++i) json.push_back(value_of(test, i));
  return json;
}

Evaluation test_from(const Json& json, int64_t images, const std::vector<Metric>& metrics) {
  // Before the test there are kMinScores, whatever the metrics.
  const size_t count = json.size() == 1 + kMinScores ? kMinScores : std::max(metrics.size(), kMinScores);
  const CheckedArray values(json, "test", 1 + count);
  std::vector<double> scores;
  for (size_t i = 0; i < std::min(count, metrics.size()); ++i) scores.push_back(values.number(i + 1, 0, 1));
  return {values.number(0), images, scores_of(metrics, scores, images)};
}

Json baselines_to_json(const std::vector<Score>& baselines) {
  Json json = Json::array();
  for (const Score& score : baselines)
    json.push_back({{"name", score.name}, {"title", score.title}, {"value", score.value}, {"images", score.images}});
  return json;
}

std::vector<Score> baselines_from(const Json& json) {
  std::vector<Score> baselines;
  for (const Json& item : json) {
    const CheckedObject values(item, "baselines");
    baselines.push_back(
        {{.name = values.text("name"), .title = values.text("title"), .phrase = "", .unit = ScoreUnit::share},
         values.number("value", 0, 1),
         values.count("images")});
  }
  return baselines;
}

// The name as this program makes it: without a folder, so that it stays in the run.
std::string event_name_from(const CheckedObject& values) {
  const std::string name = values.text("event_name"), prefix = "events.out.tfevents.";
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' || c == '-' ||
           c == '_';
  });
  if (!name.empty() && (!plain || !name.starts_with(prefix) || name.size() > 100))
    throw Error("event_name", "the name of a TensorBoard file, " + prefix + "…", Json(name).dump());
  return name;
}

}  // namespace

std::string Counters::to_json() const {
  Json json{{"epoch", sums_to_json(epoch)},
            {"interval", sums_to_json(interval)},
            {"best_top1", best.score},
            {"best_loss", best.loss},
            {"best_epoch", best_epoch},
            {"best_is_average", best_is_average},
            {"history", Json::array()},
            {"skipped_images", skipped_images},
            {"skipped_steps", skipped_steps},
            {"skipped_in_a_row", skipped_in_a_row},
            {"seconds", seconds},
            {"metrics_bytes", metrics_bytes},
            {"event_bytes", event_bytes},
            {"event_name", event_name},
            {"tested", tested},
            {"exchange", {communication.seconds, communication.overlapped, communication.waited}},
            {"test", test_to_json(test)},
            {"test_images", test.images}};
  for (const EpochResult& result : history) json["history"].push_back(epoch_to_json(result));
  if (!baselines.empty()) json["baselines"] = baselines_to_json(baselines);
  if (start) {
    json["start"] = {{"images", start->images}};
    add_evaluation(json["start"], "val", *start);
  }
  if (retrained) json["retrained"] = {{"epochs", retrained->epochs}, {"images", retrained->images}};
  return json.dump();
}

Counters Counters::from_json(const std::string& text, const std::vector<Metric>& metrics) {
  try {
    const Json json = models::parse_json(text, "counters");
    const CheckedObject values(json, "counters");
    Counters counters;
    counters.epoch = sums_from_json(json.at("epoch"), "epoch");
    counters.interval = sums_from_json(json.at("interval"), "interval");
    counters.best.score = values.number("best_top1", -1, 1);
    // Old checkpoints have no loss: of equal accuracies they kept the earlier epoch.
    counters.best.loss = json.contains("best_loss") ? values.number("best_loss") : std::nan("");
    counters.best_epoch = values.count("best_epoch");
    counters.best_is_average = values.boolean("best_is_average");
    for (const Json& item : json.at("history")) counters.history.push_back(epoch_from_json(item, metrics));
    counters.skipped_images = values.count("skipped_images");
    counters.skipped_steps = values.count("skipped_steps");
    counters.skipped_in_a_row = values.count("skipped_in_a_row");
    counters.seconds = values.finite("seconds", 0, kMaxSeconds);
    if (json.contains("exchange")) {  // absent in old checkpoints
      const CheckedArray times(json.at("exchange"), "exchange", 3);
      counters.communication = {times.finite(0), times.finite(1), times.finite(2)};
    }
    counters.metrics_bytes = static_cast<uint64_t>(values.count("metrics_bytes"));
    counters.event_bytes = static_cast<uint64_t>(values.count("event_bytes"));
    counters.event_name = event_name_from(values);
    counters.tested = values.boolean("tested");
    const int64_t test_images = json.contains("test_images") ? values.count("test_images") : 0;  // likewise
    counters.test = test_from(json.at("test"), test_images, metrics);
    if (json.contains("baselines")) counters.baselines = baselines_from(json.at("baselines"));
    if (json.contains("start")) {
      const CheckedObject start(json.at("start"), "start");
      counters.start = evaluation_from(start, "val", start.count("images"), metrics);
    }
    if (json.contains("retrained")) {
      const CheckedObject again(json.at("retrained"), "retrained");
      counters.retrained = Retraining{again.count("epochs"), again.count("images")};
    }
    return counters;
  } catch (const nlohmann::json::exception&) {
    throw Error("checkpoint", "the counters of a training run", "counters of other types, or without some of them");
  } catch (const std::exception& error) {
    throw Error("checkpoint", "the counters of a training run", error.what());
  }
}

int64_t validated_images(const Counters& counters, int64_t all) {
  for (auto epoch = counters.history.rbegin(); epoch != counters.history.rend(); ++epoch) {
    if (epoch->validation && epoch->validation->images > 0) return epoch->validation->images;
  }
  return all;
}

Evaluation tested(const Counters& counters, int64_t all) {
  Evaluation test = counters.test;
  if (test.images == 0) {
    test.images = all;
    for (Score& score : test.scores) score.images = all;
  }
  return test;
}

}  // namespace vitrail::train
