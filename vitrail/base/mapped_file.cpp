// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/mapped_file_internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "vitrail/base/crc32c_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_content_internal.h"
#include "vitrail/base/file_guard.h"
#include "vitrail/base/round_up_internal.h"

namespace vitrail {
namespace {

// The mappings, as a signal handler can read them.  Those beyond the last slot are not guarded.
struct Slot {
  std::atomic<uintptr_t> begin{0};  // 0: unused
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> lost{false};  // a page could not be read
};
std::array<Slot, 256> slots;

std::mutex open_files_mutex;

std::set<const MappedFile*>& open_files() {
  static auto& files = *new std::set<const MappedFile*>;  // never destroyed: other static objects may hold files
  return files;
}

thread_local uint64_t current_group = 0;  // the group of files that this thread opens

uintptr_t page_size() {
  static const auto size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

int add_to_slots(const void* data, size_t size) {
  for (size_t i = 0; i < slots.size(); ++i) {
    uintptr_t expected = 0;
    if (!slots[i].begin.compare_exchange_strong(expected, UINTPTR_MAX)) continue;
    slots[i].lost = false;
    slots[i].end = reinterpret_cast<uintptr_t>(data) + size;
    slots[i].begin = reinterpret_cast<uintptr_t>(data);
    return static_cast<int>(i);
  }
  return -1;
}

void remove_from_slots(int slot) {
  if (slot >= 0) slots[static_cast<size_t>(slot)].begin = 0;
}

// Replaces the mapping by zeros, from the page that could not be read to its end.
extern "C" void on_bus_error(int signal, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Slot& slot : slots) {
    const uintptr_t begin = slot.begin, end = slot.end;
    if (begin == 0 || address < begin || address >= end) continue;
    const uintptr_t first = address / page_size() * page_size();
    void* const zeros =
        ::mmap(reinterpret_cast<void*>(first), end - first, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (zeros == MAP_FAILED) break;
    slot.lost = true;
    return;
  }
  std::signal(signal, SIG_DFL);  // the access is repeated and ends the process
}

// The file in memory, for file systems that cannot map files; MAP_FAILED with errno.
void* read_copy(int file, size_t size) {
  void* const copy = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return copy;
  for (size_t done = 0; done < size;) {
    const ssize_t count = ::read(file, static_cast<char*>(copy) + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count > 0) {
      done += static_cast<size_t>(count);
      continue;
    }
    const int reason = count < 0 ? errno : EIO;  // the file is shorter than it was
    ::munmap(copy, size);
    errno = reason;
    return MAP_FAILED;
  }
  return copy;
}

int64_t nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

// What is remembered of a file, with the modification times at which its content was last seen to be the same and to be
// another one.
struct RememberedContent {
  uint32_t digest = 0;
  std::optional<int64_t> same = {}, other = {};
};

std::mutex remembered_mutex;

std::map<const MappedFile*, RememberedContent>& remembered() {
  static auto& map = *new std::map<const MappedFile*, RememberedContent>;
  return map;
}

uint32_t digest_of(const MappedFile& file) {
  const std::span<const std::byte> bytes = file.bytes();
  const uint32_t digest = crc32c(bytes.data(), bytes.size());
  file.release(bytes.data(), bytes.size());
  return digest;
}

// Whether a file that was modified at this time is known to have the content that is remembered.
bool has_same_content(const MappedFile& file, int64_t modified) {
  const std::lock_guard lock(remembered_mutex);
  const auto found = remembered().find(&file);
  if (found == remembered().end()) return false;
  RememberedContent& content = found->second;
  if (content.same != modified && content.other != modified)
    (digest_of(file) == content.digest ? content.same : content.other) = modified;
  return content.same == modified;
}

}  // namespace

void guard_mapped_files() {
  page_size();  // initialises its static before a signal arrives
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

void check_mapped_files() {
  const std::lock_guard lock(open_files_mutex);
  for (const MappedFile* file : open_files()) file->check();
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path), group_(current_group) {
  // Without a writer, opening a pipe would block.
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) throw Error(str(path.string(), ": cannot be opened: ", std::strerror(errno)));
  struct stat status {};
  const bool known = ::fstat(file_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(file_);
    throw Error(path.string(), "a regular file", known && S_ISDIR(status.st_mode) ? "a folder" : "something else");
  }
  modified_ = nanoseconds(status.st_mtim);
  size_ = static_cast<size_t>(status.st_size);
  if (size_ > 0) {
    void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file_, 0);
    is_copy_ = mapping == MAP_FAILED && (errno == ENODEV || errno == EINVAL || errno == EOPNOTSUPP);
    if (is_copy_) mapping = read_copy(file_, size_);
    if (mapping == MAP_FAILED) {
      const int reason = errno;
      ::close(file_);
      throw Error(str(path.string(), ": cannot be read: ", std::strerror(reason)));
    }
    data_ = static_cast<const std::byte*>(mapping);
    slot_ = add_to_slots(data_, size_);
  }
  const std::lock_guard lock(open_files_mutex);
  open_files().insert(this);
}

MappedFile::~MappedFile() {
  {
    const std::lock_guard lock(open_files_mutex);
    open_files().erase(this);
  }
  {
    const std::lock_guard lock(remembered_mutex);
    remembered().erase(this);
  }
  remove_from_slots(slot_);
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  ::close(file_);
}

void MappedFile::check() const {
  struct stat status {};
  const auto lost = [this] { return slot_ >= 0 && slots[static_cast<size_t>(slot_)].lost; };
  bool same = !lost() && ::fstat(file_, &status) == 0 && static_cast<size_t>(status.st_size) == size_;
  if (const int64_t modified = nanoseconds(status.st_mtim); same && modified != modified_)
    same = has_same_content(*this, modified) && !lost();
  if (!same) throw Error(path_.string(), "a file that stays the same while it is used", "one that has changed");
}

void MappedFile::prefetch(const std::byte* data, size_t size) const {
#ifdef MADV_POPULATE_READ
  const uintptr_t page = page_size();
  const uintptr_t first = reinterpret_cast<uintptr_t>(data) / page * page;
  // On failure (kernels before 5.14) the pages are mapped when they are first read.
  ::madvise(reinterpret_cast<void*>(first), reinterpret_cast<uintptr_t>(data) + size - first, MADV_POPULATE_READ);
#endif
}

void MappedFile::release(const std::byte* data, size_t size) const {
  if (is_copy_) return;  // its pages would become zeros
  // Only pages completely inside the range: the data beside it may still be in use.
  const uintptr_t page = page_size();
  const uintptr_t first = round_up(reinterpret_cast<uintptr_t>(data), page);
  const uintptr_t last = (reinterpret_cast<uintptr_t>(data) + size) / page * page;
  if (last > first) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

void remember_contents() {
  const std::lock_guard lock(open_files_mutex);
  for (const MappedFile* file : open_files()) {
    if (file->group() != current_group) continue;
    const uint32_t digest = digest_of(*file);
    file->check();
    const std::lock_guard remembered_lock(remembered_mutex);
    remembered()[file].digest = digest;
  }
}

MappedFileGroup::MappedFileGroup() {
  static std::atomic<uint64_t> numbers{0};
  number_ = ++numbers;
}

MappedFileGroup::Scope::Scope(const MappedFileGroup& group) : before_(std::exchange(current_group, group.number_)) {}

MappedFileGroup::Scope::~Scope() { current_group = before_; }

void MappedFileGroup::check() const {
  const std::lock_guard lock(open_files_mutex);
  for (const MappedFile* file : open_files()) {
    if (file->group() == number_) file->check();
  }
}

}  // namespace vitrail
