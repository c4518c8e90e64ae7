// SPDX-License-Identifier: Apache-2.0
#pragma once
// Comparison of the metrics of two runs, for the tests of data-parallel training.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/train/training_fixture.h"

namespace vitrail::train {

enum class Column { loss = 3, rate = 6, gradient_norm = 7 };

// A column of the "train" rows of metrics.csv.
inline std::vector<double> train_column(const fs::path& run, Column column) {
  std::vector<double> values;
  for (const std::string& row : deterministic_columns(run / "metrics.csv")) {
    if (!row.starts_with("train,")) continue;
    std::istringstream fields(row);
    std::string field;
    for (int i = 0; i <= static_cast<int>(column); ++i) std::getline(fields, field, ',');
    values.push_back(std::strtod(field.c_str(), nullptr));
  }
  return values;
}

// Expects equal losses within rounding.  The tiny model has ten consecutive GEMMs with at most 32 terms per sum, which
// gives 10 · √32 ≈ 64 ε for one step; each earlier update adds as much.  The test stays sensitive: dropout masks drawn
// by the position in a process's share instead of in the complete batch change the losses by far more.
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
