// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "vitrail/base/error.h"
#include "vitrail/train/metrics_log_internal.h"

namespace vitrail::train {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::filesystem::path event_path(const std::filesystem::path& folder, Counters& counters) {
  if (counters.event_name.empty())
    counters.event_name = str("events.out.tfevents.", static_cast<int64_t>(seconds_since_1970()), ".vitrail");
  std::error_code error;
  std::filesystem::create_directories(folder / "tensorboard", error);
  if (error) throw Error(str((folder / "tensorboard").string(), ": cannot be created: ", error.message()));
  return folder / "tensorboard" / counters.event_name;
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& folder, Counters& counters, const MetricNames& names)
    : names_(names),
      metrics_(folder / "metrics.csv", counters.metrics_bytes, names),
      events_(event_path(folder, counters), counters.event_bytes) {}

void MetricsLog::add(const MetricsRow& row) {
  metrics_.add(row);
  const double time = seconds_since_1970();
  auto scalar = [&](const char* name, const std::optional<double>& value) {
    if (value) events_.add_scalar(row.event + "/" + name, row.step, *value, time);
  };
  scalar("loss", row.loss);
  scalar(names_.first, row.top1);
  scalar(names_.second, row.top5);
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
