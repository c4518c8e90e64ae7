// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "vitrail/base/error.h"
#include "vitrail/train/metrics_log_internal.h"

namespace vitrail::train {
namespace {

using Json = nlohmann::ordered_json;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Json sums_to_json(const RunningSums& sums) {
  return {sums.loss, sums.correct, sums.images, sums.gradient_norm, sums.steps};
}
RunningSums sums_from_json(const Json& json) { return {json.at(0), json.at(1), json.at(2), json.at(3), json.at(4)}; }

Json epoch_to_json(const EpochResult& e) {
  return {
      {"epoch", e.epoch},       {"step", e.step},         {"train_loss", e.train_loss}, {"train_top1", e.train_top1},
      {"val_loss", e.val_loss}, {"val_top1", e.val_top1}, {"val_top5", e.val_top5},     {"ema_loss", e.ema_loss},
      {"ema_top1", e.ema_top1}, {"ema_top5", e.ema_top5}, {"validated", e.validated},   {"has_ema", e.has_ema},
      {"best", e.best},         {"seconds", e.seconds}};
}

EpochResult epoch_from_json(const Json& json) {
  EpochResult e;
  e.epoch = json.at("epoch");
  e.step = json.at("step");
  e.train_loss = json.at("train_loss");
  e.train_top1 = json.at("train_top1");
  e.val_loss = json.at("val_loss");
  e.val_top1 = json.at("val_top1");
  e.val_top5 = json.at("val_top5");
  e.ema_loss = json.at("ema_loss");
  e.ema_top1 = json.at("ema_top1");
  e.ema_top5 = json.at("ema_top5");
  e.validated = json.at("validated");
  e.has_ema = json.at("has_ema");
  e.best = json.at("best");
  e.seconds = json.at("seconds");
  return e;
}

std::filesystem::path event_path(const std::filesystem::path& folder, Counters& counters) {
  if (counters.event_name.empty())
    counters.event_name = str("events.out.tfevents.", static_cast<int64_t>(seconds_since_1970()), ".vitrail");
  std::filesystem::create_directories(folder / "tensorboard");
  return folder / "tensorboard" / counters.event_name;
}

}  // namespace

std::string Counters::to_json() const {
  Json json{{"epoch", sums_to_json(epoch)},
            {"interval", sums_to_json(interval)},
            {"best_top1", best_top1},
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
            {"test", {test_loss, test_top1, test_top5}}};
  for (const EpochResult& result : history) json["history"].push_back(epoch_to_json(result));
  return json.dump();
}

Counters Counters::from_json(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    Counters counters;
    counters.epoch = sums_from_json(json.at("epoch"));
    counters.interval = sums_from_json(json.at("interval"));
    counters.best_top1 = json.at("best_top1");
    counters.best_epoch = json.at("best_epoch");
    counters.best_is_average = json.at("best_is_average");
    for (const Json& item : json.at("history")) counters.history.push_back(epoch_from_json(item));
    counters.skipped_images = json.at("skipped_images");
    counters.skipped_steps = json.at("skipped_steps");
    counters.skipped_in_a_row = json.at("skipped_in_a_row");
    counters.seconds = json.at("seconds");
    if (const auto times = json.find("exchange"); times != json.end())  // absent in old checkpoints
      counters.communication = {times->at(0), times->at(1), times->at(2)};
    counters.metrics_bytes = json.at("metrics_bytes");
    counters.event_bytes = json.at("event_bytes");
    counters.event_name = json.at("event_name");
    counters.tested = json.at("tested");
    counters.test_loss = json.at("test").at(0);
    counters.test_top1 = json.at("test").at(1);
    counters.test_top5 = json.at("test").at(2);
    return counters;
  } catch (const Json::exception& error) {
    throw Error("checkpoint", "the counters of a training run", error.what());
  }
}

MetricsLog::MetricsLog(const std::filesystem::path& folder, Counters& counters)
    : metrics_(folder / "metrics.csv", counters.metrics_bytes),
      events_(event_path(folder, counters), counters.event_bytes) {}

void MetricsLog::add(const MetricsRow& row) {
  metrics_.add(row);
  const double time = seconds_since_1970();
  auto scalar = [&](const char* name, const std::optional<double>& value) {
    if (value) events_.add_scalar(row.event + "/" + name, row.step, *value, time);
  };
  scalar("loss", row.loss);
  scalar("top1", row.top1);
  scalar("top5", row.top5);
  scalar("learning_rate", row.learning_rate);
  scalar("gradient_norm", row.gradient_norm);
  scalar("images_per_second", row.images_per_second);
  scalar("data_wait", row.data_wait);
}

void MetricsLog::flush(Counters& counters) {
  counters.metrics_bytes = metrics_.flush();
  counters.event_bytes = events_.flush();
}

}  // namespace vitrail::train
