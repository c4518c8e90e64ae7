// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/train/run/append_only_file_internal.h"

namespace vitrail::train {
namespace fs = std::filesystem;
namespace {

Error failure(const fs::path& path, const char* what) {
  return Error(str(path.string(), ": ", what, ": ", std::strerror(errno)));
}

// Opens or creates a regular file.  O_NOFOLLOW: a symbolic link in the folder of a run could name any file.
// O_NONBLOCK: a pipe must not block.
int open_regular(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  if (file < 0 && errno == ELOOP) throw Error(path.string(), "a regular file", "a symbolic link");
  if (file < 0) throw failure(path, "cannot be written");
  struct stat status {};
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) return file;
  ::close(file);
  throw Error(path.string(), "a regular file", "another kind of file");
}

// Replaces the file by a copy of its first `keep` bytes.
void replace_by_copy(int file, const fs::path& path, uint64_t keep) {
  AtomicFile copy(path);
  std::vector<char> buffer(1 << 20);
  for (uint64_t at = 0; at < keep;) {
    const ssize_t count =
        ::pread(file, buffer.data(), std::min<uint64_t>(buffer.size(), keep - at), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw failure(path, "cannot be read");
    if (count == 0) break;  // shorter than the checkpoint says, which the caller reports
    copy.write(buffer.data(), static_cast<size_t>(count));
    at += static_cast<uint64_t>(count);
  }
  copy.commit();
}

// A file with other names, outside of the run's folder perhaps, stays as it is under them.
int open_own(const fs::path& path, uint64_t keep) {
  const int file = open_regular(path);
  struct stat status {};
  if (::fstat(file, &status) != 0 || status.st_nlink < 2) return file;
  try {
    replace_by_copy(file, path, keep);
  } catch (...) {
    ::close(file);
    throw;
  }
  ::close(file);
  return open_regular(path);
}

}  // namespace

AppendOnlyFile::AppendOnlyFile(const fs::path& path, uint64_t keep) : path_(path), file_(open_own(path, keep)) {
  struct stat status {};
  ::fstat(file_, &status);
  const auto size = static_cast<uint64_t>(status.st_size);
  try {
    if (size < keep) throw Error(path.string(), str("at least ", keep, " bytes, as the checkpoint says"), str(size));
    if (size == 0) sync_folder(path.parent_path());  // a new file: its name is to last as long as its bytes
    if (::ftruncate(file_, static_cast<off_t>(keep)) != 0) throw failure(path, "cannot be truncated");
  } catch (...) {
    ::close(file_);
    throw;
  }
  size_ = keep;
}

AppendOnlyFile::~AppendOnlyFile() { ::close(file_); }

void AppendOnlyFile::write(const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    errno = ENOSPC;  // a short write does not set errno
    const ssize_t written = ::write(file_, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw failure(path_, "write failed");
    done += static_cast<size_t>(written);
    size_ += static_cast<uint64_t>(written);
  }
}

uint64_t AppendOnlyFile::sync() const {
  if (!sync_file(file_)) throw failure(path_, "sync failed");
  return size_;
}

}  // namespace vitrail::train
