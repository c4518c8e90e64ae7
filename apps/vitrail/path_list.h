// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files with a path on each line.
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace vitrail::app {

// The line of a path, without the line break.  A path with a line break, or one that begins with a backslash, is
// escaped and marked by a backslash in front, as in the output of sha256sum.
std::string path_line(const std::string& path);
std::string path_of_line(const std::string& line);

// The number of lines of a file.
int64_t count_lines(const std::filesystem::path& file);

// The paths of these lines, which the file has, without reading the others into memory.  Throws Error if it has fewer.
std::map<int64_t, std::string> paths_at(const std::filesystem::path& file, const std::set<int64_t>& lines);

}  // namespace vitrail::app
