// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the targets share: pieces of an input, and files for parsers that read a path.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "vitrail/base/error.h"

namespace vitrail::fuzz {

// Calls `read`, which may throw Error.  Any other exception ends the target.
template <class Read>
void attempt(Read read) {
  try {
    read();
  } catch (const Error&) {
  }
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Cuts off and returns the text before `end`, which is dropped: all of it if there is no `end`.
inline std::string cut(std::string_view& text, char end) {
  const size_t size = std::min(text.find(end), text.size());
  std::string piece(text.substr(0, size));
  text.remove_prefix(std::min(size + 1, text.size()));
  return piece;
}

// Cuts off and returns a piece whose length the first two bytes give, least significant byte first.
inline std::string_view cut_sized(std::string_view& text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<size_t>(static_cast<uint8_t>(text[i])) : 0; };
  const size_t length = byte(0) | byte(1) << 8;
  text.remove_prefix(std::min<size_t>(2, text.size()));
  const std::string_view piece = text.substr(0, length);
  text.remove_prefix(piece.size());
  return piece;
}

// The lines of a text, at most `max` of them.
inline std::vector<std::string> lines_of(std::string_view text, size_t max) {
  std::vector<std::string> lines;
  while (!text.empty() && lines.size() < max) lines.push_back(cut(text, '\n'));
  return lines;
}

// A folder in memory that is removed at the end of the process.
class Folder {
 public:
  Folder() : path_("/dev/shm/vitrail-fuzz-" + std::to_string(::getpid())) {
    std::filesystem::create_directory(path_, ignored_);
  }
  ~Folder() { std::filesystem::remove_all(path_, ignored_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Writes or replaces a file and returns its path.
  std::filesystem::path write(const std::string& name, std::string_view content) const {
    const std::filesystem::path file = path_ / name;
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (descriptor < 0 || ::write(descriptor, content.data(), content.size()) != std::ssize(content)) std::abort();
    ::close(descriptor);
    return file;
  }

 private:
  std::filesystem::path path_;
  std::error_code ignored_;
};

}  // namespace vitrail::fuzz
