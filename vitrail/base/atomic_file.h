// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files that are either whole or not there.
#include <filesystem>
#include <fstream>

namespace vitrail {

// Writes beside `path` under a temporary name; commit() syncs it, renames it into place and syncs the folder.
// Destroyed without commit(), it leaves what was at `path` as it was.  A symbolic link stays, its target is replaced;
// a device or a pipe (/dev/null, /dev/stdout) is written to as it is.  Throws Error naming the path when a write fails
// (a full disk, no right) or the path is a folder.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  void write(const std::string& text) { write(text.data(), text.size()); }
  void seek(uint64_t offset);  // from the beginning; what is skipped reads as zeros
  void commit();

 private:
  std::filesystem::path path_, target_, temporary_;  // as given, behind links, and what is written to
  std::ofstream stream_;
  bool committed_ = false;
};

// Makes what was renamed in `folder` survive a loss of power.  Systems that cannot sync a folder are left to
// themselves.
void sync_folder(const std::filesystem::path& folder);

}  // namespace vitrail
