#include "vitrail/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "vitrail/base/error.h"

namespace vitrail {

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path), temporary_(path) {
  static std::atomic<unsigned> serial{0};
  temporary_ += str(".tmp", ::getpid(), "_", serial++);
  stream_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!stream_) throw Error(str(path_.string(), ": cannot be written: ", std::strerror(errno)));
}

AtomicFile::~AtomicFile() {
  if (committed_) return;
  stream_.close();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void AtomicFile::write(const void* data, size_t size) {
  stream_.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  if (!stream_) throw Error(str(path_.string(), ": write failed: ", std::strerror(errno)));
}

void AtomicFile::seek(uint64_t offset) { stream_.seekp(static_cast<std::streamoff>(offset)); }

void AtomicFile::commit() {
  stream_.close();
  if (!stream_) throw Error(str(path_.string(), ": write failed: ", std::strerror(errno)));
  const int file = ::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = file >= 0 && ::fsync(file) == 0;
  if (file >= 0) ::close(file);
  if (!synced) throw Error(str(path_.string(), ": sync failed: ", std::strerror(errno)));
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error) throw Error(str(path_.string(), ": cannot be put in place: ", error.message()));
  committed_ = true;
}

}  // namespace vitrail
