// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tar archives that tests write.
#include <cstdio>

#include "tests/data/support.h"

namespace vitrail::data {

using Names = std::vector<std::string>;

inline std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A header of a ustar archive with the content.
inline std::string tar_entry(const std::string& path, const std::string& content, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, path.size(), path);
  char number[16];
  std::snprintf(number, sizeof number, "%011zo", content.size());
  header.replace(124, 11, number);
  header[156] = type;
  header.replace(257, 6, std::string("ustar\0", 6));
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(number, sizeof number, "%06o", sum);
  header.replace(148, 7, number, 7);
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

inline std::string tar_of(const Names& paths) {
  const std::string image = read_file(testing::fixture("data/red.png"));
  std::string archive;
  for (const std::string& path : paths) archive += tar_entry(path, image);
  return archive + std::string(1024, '\0');
}

}  // namespace vitrail::data
