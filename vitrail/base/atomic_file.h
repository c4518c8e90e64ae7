// SPDX-License-Identifier: Apache-2.0
#pragma once
// Atomic file replacement: a reader sees the old file or the complete new one, never a partial file.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace vitrail {

class TemporaryFile;

// Writes to a temporary file in the same folder; commit() syncs it, moves it to `path` and syncs the folder.
// Without commit() the old file at `path` is unchanged and the temporary file vanishes (temporary_file_internal.h).
//
// The new file has the permissions of the old one.  A symbolic link is kept and its target replaced.  A file that
// cannot be replaced (a mount point, a folder without write permission) is overwritten in place by commit(). A pipe, a
// terminal or an open descriptor (/dev/stdout) receives the content in commit(), a device (/dev/null) immediately.
//
// Throws Error naming the path if a write fails (disk full, no permission) or if the path is a folder.  The constructor
// finds out whether the path can be written.
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

  // Commits files that belong together.  The first replaces its old file while the others do not exist, so that a
  // process that is killed never leaves old and new files together.  A lock on the first file's folder keeps two
  // processes with the same files from mixing them (folder_lock_internal.h).
  static void commit_together(const std::vector<AtomicFile*>& files);

 private:
  enum class Target {
    replaced,     // a regular file, or none yet
    overwritten,  // a regular file in a folder without write permission
    stream,       // takes bytes in order only
    device,       // takes bytes at any position
  };

  void open_stream();
  void open_temporary();
  int descriptor() const;  // the file that write() writes
  void flush();
  void sync();  // flushes the buffer and the file to disk
  void place();
  void copy_to(int target);
  [[noreturn]] void fail(const std::string& what, int reason) const;

  std::filesystem::path path_;    // as the caller gave it
  std::filesystem::path target_;  // with symbolic links resolved
  Target kind_ = Target::replaced;
  std::unique_ptr<TemporaryFile> temporary_;
  int stream_ = -1;  // a stream or device
  std::vector<char> buffer_;
  int failure_ = 0;  // errno of a failed write, after which the file is not committed
};

// Syncs the directory entries of `folder`, so that a rename in it survives a power failure.  Does nothing on systems
// that cannot sync a folder.
void sync_folder(const std::filesystem::path& folder);

// Writes the file to the disk, as fsync() does.  True also on file systems that cannot; false with errno.
bool sync_file(int descriptor);

}  // namespace vitrail
