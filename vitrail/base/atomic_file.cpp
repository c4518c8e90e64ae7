// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/final_target_internal.h"
#include "vitrail/base/folder_lock_internal.h"
#include "vitrail/base/temporary_file_internal.h"

namespace vitrail {

namespace fs = std::filesystem;
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;

// The number in the path of an open descriptor: /dev/stdout, /dev/fd/3, /proc/self/fd/3.
std::optional<int> descriptor_in(const std::string& path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view prefix : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(prefix)) continue;
    int number = 0;
    const char* end = path.data() + path.size();
    const auto parsed = std::from_chars(path.data() + prefix.size(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end) return number;
  }
  return std::nullopt;
}

// Returns 0 or errno.
int write_all(int file, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(file, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    data += written;
    size -= static_cast<size_t>(written);
  }
  return 0;
}

// Gives `file` the owner and the permissions of the file that it will replace.
void copy_permissions(const struct stat& from, int file) {
  struct stat own {};
  if (::fstat(file, &own) != 0) return;
  // Only root may change the owner.  A failure leaves the file to the user who wrote it.
  if (own.st_uid != from.st_uid || own.st_gid != from.st_gid)
    static_cast<void>(::fchown(file, from.st_uid, from.st_gid) == 0);
  static_cast<void>(::fchmod(file, from.st_mode & 07777));
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& path) : path_(path), target_(final_target(path)) {
  struct stat status {};
  const bool exists = ::stat(target_.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail("cannot be written", errno);
  if (exists && S_ISDIR(status.st_mode)) throw Error(path_.string(), "a file to write", "a folder");
  if (descriptor_in(path_.string()) || (exists && !S_ISREG(status.st_mode))) {
    open_stream();
    return;
  }
  // Another process may be replacing it right now (ENOENT).
  if (exists && ::access(target_.c_str(), W_OK) != 0 && errno != ENOENT) fail("cannot be written", errno);
  open_temporary();
  if (exists) copy_permissions(status, temporary_->descriptor());
}

AtomicFile::~AtomicFile() {
  if (stream_ >= 0) ::close(stream_);
}

void AtomicFile::open_stream() {
  const std::optional<int> open_descriptor = descriptor_in(path_.string());
  stream_ = open_descriptor ? ::fcntl(*open_descriptor, F_DUPFD_CLOEXEC, 3)
                            : ::open(target_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (stream_ < 0) fail("cannot be written", errno);
  const bool seekable = !open_descriptor && ::lseek(stream_, 0, SEEK_CUR) >= 0;
  kind_ = seekable ? Target::device : Target::stream;
  if (seekable) return;
  try {
    std::error_code error;
    const fs::path folder = fs::temp_directory_path(error);
    temporary_ = std::make_unique<TemporaryFile>(error ? "/tmp" : folder);
  } catch (const std::system_error& error) {
    fail("no temporary file for its content", error.code().value());
  }
}

void AtomicFile::open_temporary() {
  try {
    temporary_ = std::make_unique<TemporaryFile>(target_.parent_path());
  } catch (const std::system_error& error) {
    std::error_code unknown;
    const bool overwritable = fs::exists(target_, unknown) && !unknown;
    const fs::path elsewhere = fs::temp_directory_path(unknown);
    if (!overwritable || unknown) fail("cannot be written", error.code().value());
    kind_ = Target::overwritten;
    try {
      temporary_ = std::make_unique<TemporaryFile>(elsewhere);
    } catch (const std::system_error&) {
      fail("cannot be written", error.code().value());
    }
  }
}

int AtomicFile::descriptor() const { return temporary_ ? temporary_->descriptor() : stream_; }

void AtomicFile::fail(const std::string& what, int reason) const {
  throw Error(str(path_.string(), ": ", what, ": ", std::strerror(reason)));
}

void AtomicFile::write(const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  if (buffer_.size() + size > kBufferBytes || failure_ != 0) flush();
  if (size >= kBufferBytes) {
    failure_ = write_all(descriptor(), bytes, size);
    if (failure_ != 0) fail("write failed", failure_);
  } else {
    buffer_.insert(buffer_.end(), bytes, bytes + size);
  }
}

// After a failure the file has a gap, so that each later call fails too.
void AtomicFile::flush() {
  if (failure_ == 0) failure_ = write_all(descriptor(), buffer_.data(), buffer_.size());
  buffer_.clear();
  if (failure_ != 0) fail("write failed", failure_);
}

void AtomicFile::seek(uint64_t offset) {
  flush();
  if (::lseek(descriptor(), static_cast<off_t>(offset), SEEK_SET) < 0) fail("write failed", errno);
}

void AtomicFile::sync() {
  flush();
  if (kind_ == Target::replaced && !sync_file(temporary_->descriptor())) fail("sync failed", errno);
}

void AtomicFile::place() {
  if (kind_ == Target::stream) copy_to(stream_);
  if (kind_ == Target::stream || kind_ == Target::device) {
    if (::close(std::exchange(stream_, -1)) != 0) fail("write failed", errno);
    return;
  }
  if (kind_ == Target::replaced) {
    const std::error_code error = temporary_->link_to(target_);
    if (!error) return sync_folder(target_.parent_path());
    // A mount point, such as a file that a container gets from its host.
    if (error.value() != EBUSY && error.value() != EXDEV) fail("cannot be replaced", error.value());
  }
  const int target = ::open(target_.c_str(), O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
  if (target < 0) fail("cannot be written", errno);
  copy_to(target);
  const bool synced = sync_file(target);
  const int reason = errno;
  ::close(target);
  if (!synced) fail("sync failed", reason);
}

void AtomicFile::copy_to(int target) {
  std::array<char, kBufferBytes> block{};
  if (::lseek(temporary_->descriptor(), 0, SEEK_SET) < 0) fail("write failed", errno);
  while (true) {
    const ssize_t size = ::read(temporary_->descriptor(), block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) fail("write failed", errno);
    if (size == 0) return;
    if (const int reason = write_all(target, block.data(), static_cast<size_t>(size))) fail("write failed", reason);
  }
}

void AtomicFile::commit() { commit_together({this}); }

void AtomicFile::commit_together(const std::vector<AtomicFile*>& files) {
  for (AtomicFile* file : files) file->sync();
  // A single file needs no lock: it is replaced at once.  A stream may wait for its reader for ever.
  const AtomicFile& first = *files.front();
  const bool needs_lock = files.size() > 1 && (first.kind_ == Target::replaced || first.kind_ == Target::overwritten);
  std::optional<FolderLock> lock;
  if (needs_lock) lock.emplace(first.target_.parent_path());
  for (AtomicFile* file : files) {
    if (file != files.front() && file->kind_ == Target::replaced) ::unlink(file->target_.c_str());
  }
  for (AtomicFile* file : files) file->place();
}

void sync_folder(const fs::path& folder) {
  const int file = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  ::fsync(file);
  ::close(file);
}

bool sync_file(int descriptor) {
  return ::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP;
}

}  // namespace vitrail
