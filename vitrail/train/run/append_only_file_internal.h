// SPDX-License-Identifier: Apache-2.0
#pragma once
// Append-only files that a resumed run truncates to their length at the checkpoint.
#include <cstdint>
#include <filesystem>
#include <string>

namespace vitrail::train {

class AppendOnlyFile {
 public:
  // Truncates `path` to its first `keep` bytes, or creates it.  A file that has other names (hard links) is replaced by
  // a copy.  Throws Error if the file is shorter than `keep`, is not a regular file (symbolic links are not followed),
  // or cannot be written.
  AppendOnlyFile(const std::filesystem::path& path, uint64_t keep);
  ~AppendOnlyFile();
  AppendOnlyFile(const AppendOnlyFile&) = delete;
  AppendOnlyFile& operator=(const AppendOnlyFile&) = delete;

  // Appends without buffering, so that other programs can read the bytes now.  Throws Error if that fails.
  void write(const std::string& bytes);
  uint64_t sync() const;  // syncs the file to disk and returns its length; throws Error if that fails

 private:
  std::filesystem::path path_;
  int file_;
  uint64_t size_ = 0;
};

}  // namespace vitrail::train
