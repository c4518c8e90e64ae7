// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of training in several processes share.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/train/support.h"

namespace vitrail::train {

enum class Column { loss = 3, rate = 6 };

// A column of metrics.csv, of the rows that steps wrote.
inline std::vector<double> train_column(const fs::path& run, Column column) {
  std::vector<double> values;
  for (const std::string& row : timeless_rows(run / "metrics.csv")) {
    if (!row.starts_with("train,")) continue;
    std::istringstream fields(row);
    std::string field;
    for (int i = 0; i <= static_cast<int>(column); ++i) std::getline(fields, field, ',');
    values.push_back(std::strtod(field.c_str(), nullptr));
  }
  return values;
}

// Losses within rounding.  The tiny model is ten matrix products deep, sums of at most 32 terms: 10 · √32 ≈ 64 ε of one
// step's loss; each update made before hands on as much again, through weights that move by the rate times that.
// Dropout drawn by the place in a process's part instead of the whole batch is 50 to 400 times as far off.
inline void expect_same_losses(const fs::path& a, const fs::path& b) {
  const std::vector<double> first = train_column(a, Column::loss), second = train_column(b, Column::loss);
  ASSERT_FALSE(first.empty());
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    const double tolerance = 64 * std::numeric_limits<float>::epsilon() * static_cast<double>(i + 1);
    EXPECT_NEAR(first[i], second[i], tolerance * std::abs(first[i])) << "step " << i + 1;
  }
}

}  // namespace vitrail::train
