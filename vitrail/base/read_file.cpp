// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "vitrail/base/error.h"

namespace vitrail {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;

enum class Kinds { any, regular };  // kinds of files that are read

class OpenFile {
 public:
  OpenFile(const std::filesystem::path& path, Kinds kinds) : where_(path.string()) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (kinds == Kinds::regular ? O_NONBLOCK : 0));
    if (descriptor_ < 0) throw Error(str(where_, ": cannot be opened: ", std::strerror(errno)));
    if (::fstat(descriptor_, &status_) != 0) status_ = {};
  }
  ~OpenFile() { ::close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  bool is_folder() const { return S_ISDIR(status_.st_mode); }
  bool is_regular() const { return S_ISREG(status_.st_mode); }
  size_t size() const { return S_ISREG(status_.st_mode) ? static_cast<size_t>(status_.st_size) : 0; }

  // Reads up to `size` bytes; 0 at the end.
  size_t read(char* to, size_t size) {
    while (true) {
      const ssize_t count = ::read(descriptor_, to, size);
      if (count >= 0) return static_cast<size_t>(count);
      if (errno != EINTR) throw Error(str(where_, ": cannot be read: ", std::strerror(errno)));
    }
  }

 private:
  std::string where_;
  int descriptor_ = -1;
  struct stat status_ {};
};

template <class Bytes>
Bytes read_all(const std::filesystem::path& path, size_t max_bytes, Kinds kinds = Kinds::any) {
  OpenFile file(path, kinds);
  if (file.is_folder()) throw Error(path.string(), "a file", "a folder");
  if (kinds == Kinds::regular && !file.is_regular()) throw Error(path.string(), "a regular file", "something else");
  const auto check_size = [&](size_t size) {
    if (size > max_bytes) throw Error(path.string(), str("at most ", max_bytes, " bytes"), "more");
  };
  check_size(file.size());
  // One byte more than the size, so that the last call finds the end of the file.
  Bytes bytes;
  bytes.resize(file.size() + 1);
  size_t read = 0;
  while (const size_t count = file.read(reinterpret_cast<char*>(bytes.data()) + read, bytes.size() - read)) {
    read += count;
    check_size(read);
    if (read == bytes.size()) bytes.resize(bytes.size() + std::max(kReadBytes, bytes.size()));
  }
  bytes.resize(read);
  return bytes;
}

}  // namespace

std::vector<std::byte> read_file(const std::filesystem::path& path, size_t max_bytes) {
  return read_all<std::vector<std::byte>>(path, max_bytes);
}

std::string read_text_file(const std::filesystem::path& path, size_t max_bytes) {
  return read_all<std::string>(path, max_bytes);
}

std::string read_regular_text_file(const std::filesystem::path& path, size_t max_bytes) {
  return read_all<std::string>(path, max_bytes, Kinds::regular);
}

}  // namespace vitrail
