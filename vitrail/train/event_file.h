// SPDX-License-Identifier: Apache-2.0
#pragma once
// TensorBoard's event files: records of protocol buffers.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace vitrail::train {

// Appends scalars that TensorBoard shows.  A record is length (u64), masked CRC-32C of it, data, masked CRC-32C of the
// data (tensorflow/core/lib/io/record_writer.h); the data is an Event (tensorflow/core/util/event.proto).
class EventFile {
 public:
  // Continues `path` after its first `keep` bytes, or begins it where there is none.  Throws Error when it cannot be
  // written.
  EventFile(const std::filesystem::path& path, uint64_t keep);

  void scalar(const std::string& tag, int64_t step, double value, double seconds_since_1970);
  uint64_t flush();  // to the disk; how long the file is then

 private:
  void record(const std::string& event);
  std::filesystem::path path_;
  std::ofstream stream_;
  uint64_t size_ = 0;
};

}  // namespace vitrail::train
