// SPDX-License-Identifier: Apache-2.0
#pragma once
// Atomic file replacement: a reader sees the old file or the complete new one, never a partial file.
#include <filesystem>
#include <fstream>

namespace vitrail {

// Writes to a temporary file in the same folder; commit() syncs it, renames it to `path` and syncs the folder.
// Without commit() the destructor deletes the temporary file and the old file at `path` is unchanged.  A symbolic link
// is kept and its target replaced.  A device or pipe (/dev/null, /dev/stdout) is written to directly.
// Throws Error naming the path if a write fails (disk full, no permission) or if the path is a folder.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  void write(const std::string& text) { write(text.data(), text.size()); }
  void seek(uint64_t offset);  // from the start of the file; a skipped gap reads as zeros
  void commit();

 private:
  std::filesystem::path path_;       // as the caller gave it
  std::filesystem::path target_;     // with symbolic links resolved
  std::filesystem::path temporary_;  // the file that is written; equals target_ for a device or pipe
  std::ofstream stream_;
  bool committed_ = false;
};

// Syncs the directory entries of `folder`, so that a rename in it survives a power failure.  Does nothing on systems
// that cannot sync a folder.
void sync_folder(const std::filesystem::path& folder);

}  // namespace vitrail
