// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writing of zip archives (PKWARE APPNOTE 6.3) of stored entries, with the sizes of zip64.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/base/atomic_file.h"

namespace vitrail {

// Writes entries one after the other.  The archive appears at its path when commit() returns.
class ZipWriter {
 public:
  explicit ZipWriter(const std::filesystem::path& path);  // throws Error if the file cannot be written

  // Begins an entry.  Its first `front` bytes are known only at its end.
  void begin(const std::string& name, size_t front = 0);
  void write(const void* data, size_t size);
  void end(const std::string& front = "");

  void commit();

 private:
  struct Entry {
    std::string name;
    uint64_t offset = 0, size = 0, front = 0;
    uint32_t crc = 0;  // until end(): of the bytes after the front
  };
  static std::string local_header(const Entry& entry);
  static std::string directory_header(const Entry& entry);

  AtomicFile file_;
  std::vector<Entry> entries_;
  uint64_t position_ = 0;
};

}  // namespace vitrail
