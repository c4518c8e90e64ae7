// SPDX-License-Identifier: Apache-2.0
// Linear assignment beside SciPy's: tests/fixtures/analysis/linear_assignment.safetensors.
#include "vitrail/analysis/linear_assignment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"

namespace vitrail::analysis {
namespace {

TEST(LinearAssignment, HasTheCostOfSciPys) {
  constexpr std::string_view suffix = ".costs";
  const testing::Golden golden = testing::read_golden(testing::fixture("analysis/linear_assignment.safetensors"));
  int64_t cases = 0;
  for (const auto& [key, costs] : golden.tensors) {
    if (!key.ends_with(suffix)) continue;
    const std::string name = key.substr(0, key.size() - suffix.size());
    const int64_t rows = costs.size(0), columns = costs.size(1);
    const double* const values = costs.data<double>();
    const std::vector<int64_t> found = linear_assignment({values, static_cast<size_t>(costs.numel())}, rows, columns);
    double total = 0;
    std::set<int64_t> taken;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t column = found[static_cast<size_t>(row)];
      if (column < 0) continue;
      EXPECT_TRUE(taken.insert(column).second) << name;
      total += values[row * columns + column];
    }
    EXPECT_EQ(std::ssize(taken), std::min(rows, columns)) << name;
    EXPECT_NEAR(total, golden[name + ".total"].item<double>(), 1e-12) << name;
    if (name.starts_with("normal")) {
      const int64_t* const wanted = golden[name + ".columns"].data<int64_t>();
      EXPECT_EQ(found, std::vector(wanted, wanted + rows)) << name;
    }
    ++cases;
  }
  EXPECT_EQ(cases, 18);
}

TEST(LinearAssignment, OfNothingIsNothing) {
  EXPECT_TRUE(linear_assignment({}, 0, 3).empty());
  EXPECT_EQ(linear_assignment({}, 2, 0), (std::vector<int64_t>{-1, -1}));
}

TEST(LinearAssignment, RefusesOtherCosts) {
  const std::vector<double> costs{1, 2, NAN, 4};
  EXPECT_ERROR(testing::error_of([&] { linear_assignment(costs, 2, 2); }), "costs", "others");
  EXPECT_ERROR(testing::error_of([&] { linear_assignment(costs, 2, 3); }), "costs", "4");
}

}  // namespace
}  // namespace vitrail::analysis
