// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files that tests write into a cache.
#include <filesystem>
#include <fstream>
#include <string>

namespace vitrail::hub {

inline const std::string kCommit(40, 'c');

// Creates the folders of `path`, too.
inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace vitrail::hub
