// SPDX-License-Identifier: Apache-2.0
#pragma once
// Helpers of the dataset tests.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <zlib.h>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"

namespace vitrail::data {

namespace fs = std::filesystem;

inline void write_file(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

// The content as a gzip file.
inline std::string gzipped(const std::string& content) {
  std::string result(content.size() + 1000, '\0');
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

// Copies a small image to each of these paths below `root`.
inline void place_images(const fs::path& root, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    fs::create_directories((root / path).parent_path());
    fs::copy_file(testing::fixture("data/red.png"), root / path);
  }
}

using testing::contains;
using testing::error_of;
using testing::Warnings;

}  // namespace vitrail::data
