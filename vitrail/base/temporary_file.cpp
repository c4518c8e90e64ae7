// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/temporary_file_internal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace vitrail {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kNamePrefix = ".vitrail-", kNameSuffix = ".tmp";
constexpr size_t kDigits = 16;

// The named files of this process, for remove_temporary_files().  Files beyond the last slot are left to the next
// process that writes to their folder.
struct FileSlot {
  enum State { unused, changing, used };
  std::atomic<int> state{unused};
  std::array<char, PATH_MAX> path{};
};
std::array<FileSlot, 32> file_slots;

int add_to_file_slots(const fs::path& path) {
  if (path.native().size() >= PATH_MAX) return -1;
  for (size_t i = 0; i < file_slots.size(); ++i) {
    int expected = FileSlot::unused;
    if (!file_slots[i].state.compare_exchange_strong(expected, FileSlot::changing)) continue;
    std::memcpy(file_slots[i].path.data(), path.c_str(), path.native().size() + 1);
    file_slots[i].state = FileSlot::used;
    return static_cast<int>(i);
  }
  return -1;
}

void remove_from_file_slots(int slot) {
  if (slot >= 0) file_slots[static_cast<size_t>(slot)].state = FileSlot::unused;
}

std::system_error failure() { return {errno, std::generic_category()}; }

std::string random_name() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) throw failure();
  std::array<char, kDigits + 1> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(number));
  return std::string(kNamePrefix) + digits.data() + std::string(kNameSuffix);
}

// A running process holds a lock on its temporary files.  Others of this user belong to processes that were killed.
void remove_if_abandoned(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  struct stat status {};
  const bool own = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
  if (own && ::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
  ::close(file);
}

void remove_abandoned_files(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    if (is_temporary_name(entries->path().filename().native())) remove_if_abandoned(entries->path());
  }
}

// The same, once for each folder: a process may replace thousands of files in one.
void remove_abandoned_files_once(const fs::path& folder) {
  static std::mutex mutex;
  static std::set<fs::path> folders;
  std::error_code unknown;
  const fs::path absolute = fs::absolute(folder, unknown);
  {
    const std::lock_guard lock(mutex);
    if (unknown || !folders.insert(absolute).second) return;
  }
  remove_abandoned_files(folder);
}

std::error_code link(int descriptor, const fs::path& target) {
  const std::string source = "/proc/self/fd/" + std::to_string(descriptor);
  if (::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, target.c_str(), AT_SYMLINK_FOLLOW) == 0) return {};
  return {errno, std::generic_category()};
}

}  // namespace

bool is_temporary_name(std::string_view name) {
  return name.size() == kNamePrefix.size() + kDigits + kNameSuffix.size() && name.starts_with(kNamePrefix) &&
         name.ends_with(kNameSuffix) &&
         name.substr(kNamePrefix.size(), kDigits).find_first_not_of("0123456789abcdef") == name.npos;
}

TemporaryFile::TemporaryFile(const fs::path& folder, Kind kind) : folder_(folder.empty() ? "." : folder) {
#ifdef O_TMPFILE
  const bool can_link = ::access("/proc/self/fd", X_OK) == 0;
  if (kind == Kind::unnamed_if_possible && can_link)
    descriptor_ = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  // File systems and kernels without O_TMPFILE: EOPNOTSUPP, EISDIR, EINVAL.
  if (descriptor_ < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == EMFILE) &&
      kind == Kind::unnamed_if_possible && can_link)
    throw failure();
#endif
  if (descriptor_ < 0) open_named();
}

void TemporaryFile::open_named() {
  remove_abandoned_files(folder_);
  struct stat status {};
  do {  // until it is locked: another process may remove it before as an abandoned file
    if (descriptor_ >= 0) ::close(descriptor_);
    name_ = folder_ / random_name();
    descriptor_ = ::open(name_.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw failure();
    ::flock(descriptor_, LOCK_EX);
  } while (::fstat(descriptor_, &status) == 0 && status.st_nlink == 0);
  slot_ = add_to_file_slots(name_);
}

TemporaryFile::~TemporaryFile() {
  if (!name_.empty()) ::unlink(name_.c_str());
  remove_from_file_slots(slot_);
  ::close(descriptor_);
}

std::error_code TemporaryFile::link_to(const fs::path& target) {
  if (name_.empty()) {
    const std::error_code linked = link(descriptor_, target);
    if (linked.value() != EEXIST) return linked;
    // A link cannot replace a file, but a rename can.  The lock says that the name between them is in use.
    remove_abandoned_files_once(folder_);
    ::flock(descriptor_, LOCK_EX);
    name_ = folder_ / random_name();
    slot_ = add_to_file_slots(name_);
    if (const std::error_code error = link(descriptor_, name_)) return error;
  }
  if (::rename(name_.c_str(), target.c_str()) != 0) return {errno, std::generic_category()};
  name_.clear();
  return {};
}

void remove_temporary_files() noexcept {
  for (FileSlot& slot : file_slots) {
    if (slot.state == FileSlot::used) ::unlink(slot.path.data());
  }
}

}  // namespace vitrail
