// SPDX-License-Identifier: Apache-2.0
// The low-cost correction of a quantised weight's error, and the sums of rows that it uses.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/linear_problem.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/rowwise/row_sum_internal.h"

namespace vitrail::kernels {
namespace {

using testing::Buffer;
using testing::Problem;

TEST(RowSum, IsTheSumOfEveryColumn) {
  for (const int64_t cols : testing::kAwkwardLengths) {
    for (const int64_t rows : {0, 1, 7}) {
      const int64_t ldx = cols + 3;
      const std::vector<float> x = testing::random_floats(rows * ldx, 1);
      testing::for_each_isa([&](Isa) {
        Buffer to(cols, 1);
        sum_of_rows(x.data(), ldx, rows, cols, 0.5F, to.data());
        add_rows(x.data(), ldx, rows, cols, to.data());
        to.check();
        for (int64_t c = 0; c < cols; ++c) {
          double sum = 0;
          for (int64_t r = 0; r < rows; ++r) sum += x[r * ldx + c];
          EXPECT_NEAR(to.data()[c], (0.5 + 1) * sum, 1e-5) << c;
        }
      });
    }
  }
}

struct Groups {
  int64_t count, rows, individual;
};

// y_r = Q x_r + E z_r + b in double precision, where z_r is x_r for an individual row and the mean of the group's other
// rows for these.
std::vector<double> expected(const Problem& problem, const std::vector<float>& error, const Groups& groups) {
  std::vector<double> y(static_cast<size_t>(problem.rows * problem.out));
  for (int64_t r = 0; r < problem.rows; ++r) {
    const int64_t group = r / groups.rows * groups.rows;
    for (int64_t c = 0; c < problem.out; ++c) {
      double sum = problem.bias[c];
      for (int64_t p = 0; p < problem.in; ++p) {
        double z = problem.x[r * problem.in + p];
        if (r - group >= groups.individual) {
          z = 0;
          for (int64_t t = group + groups.individual; t < group + groups.rows; ++t) z += problem.x[t * problem.in + p];
          z /= static_cast<double>(groups.rows - groups.individual);
        }
        sum +=
            double{problem.weight[c * problem.in + p]} * problem.x[r * problem.in + p] + error[c * problem.in + p] * z;
      }
      y[r * problem.out + c] = sum;
    }
  }
  return y;
}

// x and Q are integers that int8 represents, so only the correction has quantisation errors.
TEST(WeightCorrection, AddsEOfIndividualRowsAndOfTheMeanOfTheOtherRowsOfTheirGroup) {
  struct Case {
    Groups groups;
    int64_t in, out;
  };
  for (const Case& sizes :
       {Case{{1, 197, 1}, 48, 70}, Case{{3, 33, 2}, 21, 33}, Case{{2, 60, 0}, 16, 32}, Case{{4, 1, 1}, 40, 9},
        Case{{5, 2, 1}, 8, 3}, Case{{2, 3, 5}, 12, 40}, Case{{1, 70, 1}, 900, 40}}) {
    const Groups& groups = sizes.groups;
    const int64_t in = sizes.in, out = sizes.out, rows = groups.count * groups.rows;
    Problem problem(rows, in, out);
    for (int64_t i = 0; i < rows * in; ++i) {
      problem.x[i] = i % in == 0 ? -100.0F : i % in == 1 ? 155.0F : static_cast<float>(i * 37 % 255 - 100);
    }
    for (int64_t i = 0; i < out * in; ++i) {
      problem.weight[i] = i % in == 2 ? 127.0F : static_cast<float>(i * 29 % 253 - 126);
    }
    const std::vector<float> error = testing::random_floats(out * in, 5, 0.4F);
    const std::vector<double> want = expected(problem, error, groups);
    testing::for_each_isa([&](Isa) {
      const PackedLinear linear(problem.weight.data(), problem.bias.data(), out, in, Precision::int8);
      ASSERT_TRUE(linear.takes_correction());
      const PackedLinear packed_error(error.data(), problem.bias.data(), out, in, Precision::int8);
      const WeightCorrection correction{
          .error = &packed_error, .group_rows = groups.rows, .individual_rows = groups.individual};
      for (const int64_t stride : {int64_t{0}, groups.rows}) {
        const std::vector<float> got = testing::run(linear, problem, {.stride = stride}, correction);
        // The scales are 255 / 255 for x and about 1.8 / 127 for E: half of each, times the other factor.
        const double tolerance = static_cast<double>(in) * (0.5 * 0.4 + 155 * 0.5 * 1.8 / 127);
        double squared_error = 0;
        for (size_t i = 0; i < want.size(); ++i) {
          ASSERT_NEAR(got[i], want[i], tolerance) << i << " of " << groups.rows << " " << groups.individual;
          squared_error += (got[i] - want[i]) * (got[i] - want[i]);
        }
        // Rounding errors have both signs: far below their bound, and below E x.
        EXPECT_LT(std::sqrt(squared_error / static_cast<double>(want.size())), tolerance / 5) << groups.rows;
      }
    });
  }
}

TEST(WeightCorrection, GivesTheSameBitsWithAnyNumberOfThreads) {
  const Problem problem(2 * 197, 64, 96);
  const std::vector<float> error = testing::random_floats(96 * 64, 5, 0.01F);
  const PackedLinear linear(problem.weight.data(), problem.bias.data(), 96, 64, Precision::int8);
  const PackedLinear packed_error(error.data(), problem.bias.data(), 96, 64, Precision::int8);
  const WeightCorrection correction{.error = &packed_error, .group_rows = 197, .individual_rows = 1};
  const std::vector<float> want = testing::run(linear, problem, {.stride = 197}, correction);
  for (const int threads : {1, 2, 3}) {
    const ThreadCount count(threads);
    EXPECT_EQ(testing::run(linear, problem, {.stride = 197}, correction), want) << threads;
  }
}

TEST(WeightCorrection, IsSupportedByInt8Only) {
  const Problem problem(3, 8, 8);
  for (const Precision precision : {Precision::fp32, Precision::half}) {
    EXPECT_FALSE(PackedLinear(problem.weight.data(), nullptr, 8, 8, precision).takes_correction());
  }
}

}  // namespace
}  // namespace vitrail::kernels
