// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writer of TensorBoard event files.
#include <cstdint>
#include <filesystem>
#include <string>

#include "vitrail/train/run/append_only_file_internal.h"

namespace vitrail::train {

// Appends scalars to an event file.  The file is a sequence of records: length (u64), masked CRC-32C of the length,
// data, masked CRC-32C of the data (tensorflow/core/lib/io/record_writer.h).  The data is a protocol buffer of type
// Event (tensorflow/core/util/event.proto).
class EventFile {
 public:
  // Truncates `path` to its first `keep` bytes, or creates it.  Throws Error if it cannot be written.
  EventFile(const std::filesystem::path& path, uint64_t keep);

  void add_scalar(const std::string& tag, int64_t step, double value, double seconds_since_1970);
  uint64_t flush();  // syncs the file to disk and returns its length in bytes

 private:
  void write_record(const std::string& event);

  AppendOnlyFile file_;
};

}  // namespace vitrail::train
