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

Json epoch_to_json(const EpochResult& e) {
  return {
      {"epoch", e.epoch},       {"step", e.step},         {"train_loss", e.train_loss}, {"train_top1", e.train_top1},
      {"val_loss", e.val_loss}, {"val_top1", e.val_top1}, {"val_top5", e.val_top5},     {"val_images", e.val_images},
      {"ema_loss", e.ema_loss}, {"ema_top1", e.ema_top1}, {"ema_top5", e.ema_top5},     {"validated", e.validated},
      {"has_ema", e.has_ema},   {"best", e.best},         {"seconds", e.seconds}};
}

EpochResult epoch_from_json(const Json& json) {
  const CheckedObject values(json, "history");
  EpochResult e;
  e.epoch = values.count("epoch");
  e.step = values.count("step");
  e.train_loss = values.number("train_loss");
  e.train_top1 = values.number("train_top1", 0, 1);
  e.val_loss = values.number("val_loss");
  e.val_top1 = values.number("val_top1", 0, 1);
  e.val_top5 = values.number("val_top5", 0, 1);
  if (json.contains("val_images")) e.val_images = values.count("val_images");  // absent in old checkpoints
  e.ema_loss = values.number("ema_loss");
  e.ema_top1 = values.number("ema_top1", 0, 1);
  e.ema_top5 = values.number("ema_top5", 0, 1);
  e.validated = values.boolean("validated");
  e.has_ema = values.boolean("has_ema");
  e.best = values.boolean("best");
  e.seconds = values.finite("seconds", 0, kMaxSeconds);
  return e;
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
            {"best_top1", best.top1},
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
            {"test", {test_loss, test_top1, test_top5}},
            {"test_images", test_images}};
  for (const EpochResult& result : history) json["history"].push_back(epoch_to_json(result));
  return json.dump();
}

Counters Counters::from_json(const std::string& text) {
  try {
    const Json json = models::parse_json(text, "counters");
    const CheckedObject values(json, "counters");
    Counters counters;
    counters.epoch = sums_from_json(json.at("epoch"), "epoch");
    counters.interval = sums_from_json(json.at("interval"), "interval");
    counters.best.top1 = values.number("best_top1", -1, 1);
    // Old checkpoints have no loss: of equal accuracies they kept the earlier epoch.
    counters.best.loss = json.contains("best_loss") ? values.number("best_loss") : std::nan("");
    counters.best_epoch = values.count("best_epoch");
    counters.best_is_average = values.boolean("best_is_average");
    for (const Json& item : json.at("history")) counters.history.push_back(epoch_from_json(item));
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
    const CheckedArray test(json.at("test"), "test", 3);
    counters.test_loss = test.number(0);
    counters.test_top1 = test.number(1, 0, 1);
    counters.test_top5 = test.number(2, 0, 1);
    if (json.contains("test_images")) counters.test_images = values.count("test_images");  // likewise
    return counters;
  } catch (const nlohmann::json::exception&) {
    throw Error("checkpoint", "the counters of a training run", "counters of other types, or without some of them");
  } catch (const std::exception& error) {
    throw Error("checkpoint", "the counters of a training run", error.what());
  }
}

}  // namespace vitrail::train
