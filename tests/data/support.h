// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of datasets share.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"

namespace vitrail::data {

namespace fs = std::filesystem;

inline void write_file(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

// Puts a small picture at each of these places below `root`.
inline void place_images(const fs::path& root, const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    fs::create_directories((root / place).parent_path());
    fs::copy_file(testing::fixture("data/red.png"), root / place);
  }
}

using testing::contains;
using testing::error_of;
using testing::Warnings;

}  // namespace vitrail::data
