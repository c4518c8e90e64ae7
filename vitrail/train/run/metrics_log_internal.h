// SPDX-License-Identifier: Apache-2.0
#pragma once
// The files that the metrics of a run are written to.
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/train/run/counters_internal.h"
#include "vitrail/train/run/event_file_internal.h"
#include "vitrail/train/run/metrics_file_internal.h"

namespace vitrail::train {

// Writes the same rows to metrics.csv and to a TensorBoard event file.
class MetricsLog {
 public:
  // Truncates both files to the lengths in `counters`.  Chooses counters.event_name if it is empty.  A file that is
  // absent or shorter does not end the run: metrics.csv is continued after its last whole line, a new event file
  // begins.
  MetricsLog(const std::filesystem::path& folder, Counters& counters, const std::vector<Metric>& metrics);
  const std::vector<std::string>& notes() const { return notes_; }  // what is missing from the files, for the log
  void add(const MetricsRow& row);
  void flush(Counters& counters);  // syncs both files to disk and stores their lengths in `counters`

 private:
  std::vector<std::string> notes_;
  std::vector<Metric> scores_;
  MetricsFile metrics_;
  EventFile events_;
};

}  // namespace vitrail::train
