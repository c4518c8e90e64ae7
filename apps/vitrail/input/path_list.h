// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files with a path on each line.
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/base/mapped_file_internal.h"

namespace vitrail::app {

// The line of a path, without the line break.  A path with a line break, or one that begins with a backslash, is
// escaped and marked by a backslash in front, as in the output of sha256sum.
std::string path_line(const std::string& path);
std::string path_of_line(const std::string& line);

// The paths of a file, which stays mapped: only where each line ends is in memory.  Throws Error as MappedFile.
class PathList {
 public:
  explicit PathList(const std::filesystem::path& file);

  int64_t size() const { return std::ssize(ends_); }
  std::string at(int64_t line) const;  // 0 <= line < size()

 private:
  MappedFile file_;
  std::vector<size_t> ends_;  // the line breaks
};

}  // namespace vitrail::app
