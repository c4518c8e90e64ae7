// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/metrics_file_internal.h"

#include <charconv>
#include <cstdio>

#include "vitrail/base/error.h"

namespace vitrail::train {
namespace {

// The shortest decimal text that is read back as the same double.
std::string exact(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::string rounded(const std::optional<double>& value, int digits) {
  if (!value) return "";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, *value);
  return text;
}

std::string exact(const std::optional<double>& value) { return value ? exact(*value) : ""; }

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path, uint64_t keep, const std::vector<Metric>& metrics)
    : file_(path, keep), scores_(metrics.size()) {
  if (keep > 0) return;
  std::string names;
  for (const Metric& metric : metrics) names += "," + metric.name;
  file_.write(
      str("event,step,epoch,loss", names, ",learning_rate,gradient_norm,images_per_second,data_wait,seconds\n"));
}

void MetricsFile::add(const MetricsRow& row) {
  std::string scores;
  for (size_t i = 0; i < scores_; ++i) scores += i < row.scores.size() ? "," + exact(row.scores[i]) : ",";
  file_.write(str(row.event, ',', row.step, ',', rounded(row.epoch, 4), ',', exact(row.loss), scores, ',',
                  exact(row.learning_rate), ',', exact(row.gradient_norm), ',', rounded(row.images_per_second, 1), ',',
                  rounded(row.data_wait, 4), ',', rounded(row.seconds, 2), '\n'));
}

uint64_t MetricsFile::flush() { return file_.sync(); }

}  // namespace vitrail::train
