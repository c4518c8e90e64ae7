// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/file_lookup_internal.h"

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "vitrail/base/error.h"

namespace vitrail::weights {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxText = 64'000'000;

}  // namespace

PathKind look_up(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none) {
    throw Error(str(path.string(), ": cannot be opened: ", error.message()));
  }
  if (status.type() == fs::file_type::not_found) return PathKind::missing;
  return status.type() == fs::file_type::directory ? PathKind::folder : PathKind::other;
}

std::string read_text(const fs::path& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(str(path.string(), ": cannot be opened: ", std::error_code(errno, std::generic_category()).message()));
  }
  if (look_up(path) == PathKind::folder) throw Error(path.string(), "a text file", "a folder");
  std::string text;
  std::array<char, 1 << 16> chunk;
  while (file.read(chunk.data(), chunk.size()), file.gcount() > 0) {
    text.append(chunk.data(), static_cast<size_t>(file.gcount()));
    if (text.size() > kMaxText) throw Error(path.string(), str("at most ", kMaxText, " bytes of text"), "more");
  }
  return text;
}

}  // namespace vitrail::weights
