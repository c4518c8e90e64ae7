// SPDX-License-Identifier: Apache-2.0
#pragma once
// Helpers of the dataset tests.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/deflate.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/data/datasets/manifest.h"
#include "vitrail/data/metrics/classification_report.h"

namespace vitrail::data {

namespace fs = std::filesystem;

inline void write_file(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::vector<std::string> dataset_splits(const fs::path& path) { return read_manifest(path)->splits(); }

// Copies a small image to each of these paths below `root`.
inline void place_images(const fs::path& root, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    fs::create_directories((root / path).parent_path());
    fs::copy_file(testing::fixture("data/red.png"), root / path);
  }
}

constexpr double kRounding = 1e-12;  // some hundred operations on doubles below 1

// `expected`: precision, recall and F1.
inline void expect_average(const ClassMetrics& metrics, const std::vector<double>& expected) {
  EXPECT_NEAR(metrics.precision, expected.at(0), kRounding);
  EXPECT_NEAR(metrics.recall, expected.at(1), kRounding);
  EXPECT_NEAR(metrics.f1, expected.at(2), kRounding);
}

using testing::contains;
using testing::error_of;
using testing::gzipped;
using testing::Warnings;

}  // namespace vitrail::data
