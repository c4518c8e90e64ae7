// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/path_list.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/mapped_file_internal.h"

namespace vitrail::app {

std::string path_line(const std::string& path) {
  if (path.find_first_of("\n\r") == path.npos && !path.starts_with('\\')) return path;
  std::string line = "\\";
  for (const char c : path) line += c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\\' ? "\\\\" : std::string(1, c);
  return line;
}

std::string path_of_line(const std::string& line) {
  if (!line.starts_with('\\')) return line;
  std::string path;
  for (size_t i = 1; i < line.size(); ++i) {
    const bool escape = line[i] == '\\' && i + 1 < line.size();
    if (escape) ++i;
    path += !escape ? line[i] : line[i] == 'n' ? '\n' : line[i] == 'r' ? '\r' : line[i];
  }
  return path;
}

int64_t count_lines(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  return std::ranges::count(mapped.bytes(), std::byte{'\n'});
}

std::map<int64_t, std::string> paths_at(const std::filesystem::path& file, const std::set<int64_t>& lines) {
  const MappedFile mapped(file);
  std::map<int64_t, std::string> paths;
  auto begin = mapped.bytes().begin();
  int64_t line = 0;
  for (const int64_t wanted : lines) {
    auto end = begin;
    for (;; ++line, begin = end + 1) {
      end = std::find(begin, mapped.bytes().end(), std::byte{'\n'});
      if (end == mapped.bytes().end()) throw Error(file.string(), str("a line ", wanted + 1), str(line, " lines"));
      if (line == wanted) break;
    }
    paths[wanted] = path_of_line({reinterpret_cast<const char*>(&*begin), static_cast<size_t>(end - begin)});
  }
  return paths;
}

}  // namespace vitrail::app
