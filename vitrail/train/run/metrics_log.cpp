// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/train/run/metrics_log_internal.h"

namespace vitrail::train {
namespace fs = std::filesystem;
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The length of a regular file, 0 where there is none.  Links are left to AppendOnlyFile, which refuses them.
uint64_t length_of(const fs::path& path, uint64_t expected) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(path, error))) return expected;
  const uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

// The bytes of metrics.csv that stay.  It is continued after its last whole line where a copy or a power cut has
// shortened it.
uint64_t kept_metrics(const fs::path& path, const Counters& counters, std::vector<std::string>& notes) {
  const uint64_t length = length_of(path, counters.metrics_bytes);
  if (length >= counters.metrics_bytes) return counters.metrics_bytes;
  const uint64_t whole_lines = length == 0 ? 0 : read_text_file(path).rfind('\n') + 1;
  notes.push_back(str(path.string(), " has ", length, " of ", counters.metrics_bytes,
                      " bytes that the checkpoint counts: its last rows are lost, the training is not"));
  return whole_lines;
}

// The event file.  A new one continues where it is absent or shorter: TensorBoard reads all files of a folder.
EventFile open_events(const fs::path& folder, Counters& counters, std::vector<std::string>& notes) {
  const fs::path events = folder / "tensorboard";
  if (!counters.event_name.empty() &&
      length_of(events / counters.event_name, counters.event_bytes) < counters.event_bytes) {
    notes.push_back(str((events / counters.event_name).string(),
                        " is absent or shorter than the checkpoint says: a new event file continues it"));
    counters.event_name.clear();
    counters.event_bytes = 0;
  }
  if (counters.event_name.empty())
    counters.event_name = str("events.out.tfevents.", static_cast<int64_t>(seconds_since_1970()), ".vitrail");
  std::error_code error;
  fs::create_directories(events, error);
  if (error) throw Error(str(events.string(), ": cannot be created: ", error.message()));
  sync_folder(folder);
  return EventFile(events / counters.event_name, counters.event_bytes);
}

}  // namespace

MetricsLog::MetricsLog(const fs::path& folder, Counters& counters, const std::vector<Metric>& metrics)
    : scores_(metrics),
      metrics_(folder / "metrics.csv", kept_metrics(folder / "metrics.csv", counters, notes_), metrics),
      events_(open_events(folder, counters, notes_)) {}

void MetricsLog::add(const MetricsRow& row) {
  metrics_.add(row);
  const double time = seconds_since_1970();
  auto scalar = [&](const std::string& name, const std::optional<double>& value) {
    if (value) events_.add_scalar(row.event + "/" + name, row.step, *value, time);
  };
  scalar("loss", row.loss);
  for (size_t i = 0; i < row.scores.size(); ++i) scalar(scores_[i].name, row.scores[i]);
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
