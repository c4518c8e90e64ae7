// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "vitrail/base/error.h"

namespace vitrail {

namespace fs = std::filesystem;

AtomicFile::AtomicFile(const fs::path& path) : path_(path), target_(path) {
  static std::atomic<unsigned> serial{0};  // makes temporary names unique within the process
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);  // follows symbolic links
  if (fs::is_directory(status)) throw Error(path.string(), "a file to write", "a folder");
  if (const fs::path real = fs::canonical(path, ignored); fs::is_regular_file(status) && !ignored) target_ = real;
  temporary_ = target_;
  // A device or a pipe cannot be replaced by a renamed file, so it is written to directly.
  if (fs::is_regular_file(status) || !fs::exists(status)) temporary_ += str(".tmp", ::getpid(), "_", serial++);
  stream_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!stream_) throw Error(str(path_.string(), ": cannot be written: ", std::strerror(errno)));
}

AtomicFile::~AtomicFile() {
  if (committed_ || temporary_ == target_) return;
  stream_.close();
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

void AtomicFile::write(const void* data, size_t size) {
  stream_.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  if (!stream_) throw Error(str(path_.string(), ": write failed: ", std::strerror(errno)));
}

void AtomicFile::seek(uint64_t offset) { stream_.seekp(static_cast<std::streamoff>(offset)); }

void AtomicFile::commit() {
  stream_.close();
  if (!stream_) throw Error(str(path_.string(), ": write failed: ", std::strerror(errno)));
  committed_ = temporary_ == target_;
  if (committed_) return;
  const int file = ::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = file >= 0 && ::fsync(file) == 0;
  if (file >= 0) ::close(file);
  if (!synced) throw Error(str(path_.string(), ": sync failed: ", std::strerror(errno)));
  std::error_code error;
  fs::rename(temporary_, target_, error);
  if (error) throw Error(str(path_.string(), ": cannot be replaced: ", error.message()));
  committed_ = true;
  sync_folder(target_.parent_path());
}

void sync_folder(const fs::path& folder) {
  const int file = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  ::fsync(file);
  ::close(file);
}

}  // namespace vitrail
