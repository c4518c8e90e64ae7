// SPDX-License-Identifier: Apache-2.0
#pragma once
// metrics.csv: a row per so many steps, and one per validation and test.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace vitrail::train {

// One row; what an event does not have is left empty.
struct MetricsRow {
  std::string event;  // "train", "val", "val_ema", "test"
  int64_t step = 0;   // optimiser steps done
  double epoch = 0;   // done, with fractions
  double loss = 0, top1 = 0;
  std::optional<double> top5, learning_rate, gradient_norm;
  std::optional<double> images_per_second, data_wait, seconds;  // differ from run to run
};

// Columns: event,step,epoch,loss,top1,top5,learning_rate,gradient_norm,images_per_second,data_wait,seconds.  Numbers
// that do not depend on the clock are written so that they read back to the same double.
class MetricsFile {
 public:
  // Continues `path` after its first `keep` bytes, or begins it.  Errors as a failed write.
  MetricsFile(const std::filesystem::path& path, uint64_t keep);
  void add(const MetricsRow& row);
  uint64_t flush();  // to the disk; how long the file is then

 private:
  void write(const std::string& line);
  std::filesystem::path path_;
  std::ofstream stream_;
  uint64_t size_ = 0;
};

}  // namespace vitrail::train
