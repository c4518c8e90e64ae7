// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/mapped_file_internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "vitrail/base/error.h"

namespace vitrail {

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const int file =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // without a writer, opening a pipe would block
  if (file < 0) throw Error(str(path.string(), ": cannot be opened: ", std::strerror(errno)));
  struct stat status {};
  const bool known = ::fstat(file, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(file);
    throw Error(path.string(), "a regular file", known && S_ISDIR(status.st_mode) ? "a folder" : "something else");
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ > 0) {
    void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    const int reason = errno;
    ::close(file);
    if (mapping == MAP_FAILED) throw Error(str(path.string(), ": cannot be mapped: ", std::strerror(reason)));
    data_ = static_cast<const std::byte*>(mapping);
  } else {
    ::close(file);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::prefetch(const std::byte* data, size_t size) const {
#ifdef MADV_POPULATE_READ
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = reinterpret_cast<uintptr_t>(data) / page * page;
  // On failure (kernels before 5.14) the pages are mapped when they are first read.
  ::madvise(reinterpret_cast<void*>(first), reinterpret_cast<uintptr_t>(data) + size - first, MADV_POPULATE_READ);
#endif
}

void MappedFile::release(const std::byte* data, size_t size) const {
  // Only pages completely inside the range: the data beside it may still be in use.
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const uintptr_t last = (reinterpret_cast<uintptr_t>(data) + size) / page * page;
  if (last > first) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace vitrail
