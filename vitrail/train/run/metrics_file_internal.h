// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writer of metrics.csv: one row per logging interval, validation and test.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/train/objectives/scores.h"
#include "vitrail/train/run/append_only_file_internal.h"

namespace vitrail::train {

// One row.  Values that an event does not have are empty.
struct MetricsRow {
  std::string event;  // "train", "val", "val_ema", "test"
  int64_t step = 0;   // optimiser steps so far
  double epoch = 0;   // epochs so far, with fractions
  double loss = 0;
  std::vector<double> scores = {};  // the first of the objective's, or all
  std::optional<double> learning_rate = {}, gradient_norm = {};
  std::optional<double> images_per_second = {}, data_wait = {},
                        seconds = {};  // timings, which differ between equal runs
};

// Columns: event,step,epoch,loss, the names of the metrics, learning_rate,gradient_norm,images_per_second,data_wait,
// seconds.  Values that do not depend on time are written with enough digits to be read back exactly.
class MetricsFile {
 public:
  // Truncates `path` to its first `keep` bytes, or creates it.  All members throw Error if a write fails.
  MetricsFile(const std::filesystem::path& path, uint64_t keep, const std::vector<Metric>& metrics);
  void add(const MetricsRow& row);
  uint64_t flush();  // syncs the file to disk and returns its length in bytes

 private:
  AppendOnlyFile file_;
  size_t scores_;  // number of columns
};

}  // namespace vitrail::train
