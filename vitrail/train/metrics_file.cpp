// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/metrics_file_internal.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "vitrail/base/error.h"
#include "vitrail/train/append_only_file_internal.h"

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

MetricsFile::MetricsFile(const std::filesystem::path& path, uint64_t keep)
    : path_(path), stream_(open_for_append(path, keep)), size_(keep) {
  if (size_ == 0)
    write("event,step,epoch,loss,top1,top5,learning_rate,gradient_norm,images_per_second,data_wait,seconds\n");
}

void MetricsFile::add(const MetricsRow& row) {
  write(str(row.event, ',', row.step, ',', rounded(row.epoch, 4), ',', exact(row.loss), ',', exact(row.top1), ',',
            exact(row.top5), ',', exact(row.learning_rate), ',', exact(row.gradient_norm), ',',
            rounded(row.images_per_second, 1), ',', rounded(row.data_wait, 4), ',', rounded(row.seconds, 2), '\n'));
}

void MetricsFile::write(const std::string& line) {
  stream_ << line;
  stream_.flush();  // so that other programs can read the row now
  if (!stream_) throw Error(str(path_.string(), ": write failed: ", std::strerror(errno)));
  size_ += line.size();
}

uint64_t MetricsFile::flush() {
  flush_to_disk(stream_, path_);
  return size_;
}

}  // namespace vitrail::train
