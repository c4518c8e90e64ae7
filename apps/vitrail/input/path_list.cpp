// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/input/path_list.h"

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

PathList::PathList(const std::filesystem::path& file) : file_(file) {
  for (size_t i = 0; i < file_.bytes().size(); ++i) {
    if (file_.bytes()[i] == std::byte{'\n'}) ends_.push_back(i);
  }
}

std::string PathList::at(int64_t line) const {
  const auto i = static_cast<size_t>(line);
  const size_t begin = i == 0 ? 0 : ends_[i - 1] + 1;
  const auto bytes = file_.bytes().subspan(begin, ends_[i] - begin);
  return path_of_line({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace vitrail::app
