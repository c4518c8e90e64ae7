// SPDX-License-Identifier: Apache-2.0
// The low-cost correction of a quantised weight's error, and the sums of rows that it uses.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/linear_problem.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/gemm/weight_correction_internal.h"
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

// A thread sums a few wide rows at a time.  E is 1 everywhere and Q is 0, so y is the sum of the row, or of the mean.
TEST(WeightCorrection, EachWideRowCountsOnceInTheMeanOfItsGroup) {
  constexpr int64_t kRows = 71, kIn = 900, kOut = 3;
  Problem problem(kRows, kIn, kOut);
  for (int64_t i = 0; i < kRows * kIn; ++i) problem.x[i] = static_cast<float>(i / kIn + 1);
  const std::vector<float> zeros(kOut * kIn), ones(kOut * kIn, 1.0F);
  testing::for_each_isa([&](Isa) {
    const PackedLinear linear(zeros.data(), nullptr, kOut, kIn, Precision::int8);
    const PackedLinear error(ones.data(), nullptr, kOut, kIn, Precision::int8);
    const WeightCorrection correction{.error = &error, .group_rows = kRows, .individual_rows = 1};
    const std::vector<float> got = testing::run(linear, problem, {}, correction);
    for (int64_t i = 0; i < kRows * kOut; ++i) {
      const double want = i < kOut ? 900 : 900 * 36.5;  // the first row has ones; the others, 2 to 71, this mean
      EXPECT_NEAR(got[i], want, 1e-4 * want) << i;
    }
  });
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

// Two groups of 20 rows.  The first two are individual, so that a group has three biases.
TEST(WeightCorrectionPass, DividesGroupsIntoChunksAndStatesItsScratch) {
  const Problem problem(1, 10, 70);
  const PackedLinear error(problem.weight.data(), nullptr, 70, 10, Precision::int8);
  const WeightCorrectionPass pass(
      {.count = 40, .correction = {.error = &error, .group_rows = 20, .individual_rows = 2}});
  ASSERT_TRUE(pass.enabled());
  ASSERT_EQ(pass.num_chunks(), 16);
  int64_t row = 0;
  for (int64_t c = 0; c < 16; ++c) {
    const auto [first, last] = pass.chunk(c);
    EXPECT_EQ(first, row) << c;
    EXPECT_GE(last - first, 2) << c;
    EXPECT_LE(last - first, 3) << c;
    row = last;
    if (c == 7) {
      EXPECT_EQ(last, 20) << "chunks do not cross groups";
    }
  }
  EXPECT_EQ(row, 40);
  // 16 sums and 6 inputs of 10 floats, 6 biases of 128 floats, each array a multiple of 64 bytes.
  EXPECT_EQ(pass.scratch_bytes(), 640u + 256u + 3072u + error.scratch_bytes({.count = 6}));
  const WeightCorrectionPass few({.count = 6, .correction = {.error = &error, .group_rows = 3, .individual_rows = 5}});
  EXPECT_EQ(few.num_chunks(), 6) << "none is empty";
  EXPECT_EQ(few.scratch_bytes(), 256u + 256u + 3072u + error.scratch_bytes({.count = 6})) << "all rows are individual";
  const WeightCorrectionPass none({.count = 6});
  EXPECT_FALSE(none.enabled());
  EXPECT_EQ(none.scratch_bytes(), 0u);
  EXPECT_EQ(none.row_biases({}, nullptr).data, nullptr);
}

TEST(RowBias, IteratesOverTheBiasesOfRows) {
  const std::vector<float> memory(100);
  const RowBias biases{memory.data(), 10, 4, 2};  // rows 0, 1, then 2 for the two others
  EXPECT_TRUE(biases.has_shared_bias());
  EXPECT_EQ(biases.biases_per_group(), 3);
  const std::vector<int64_t> want{0, 1, 2, 2, 3, 4, 5, 5, 6};
  for (int64_t first = 0; first < 9; ++first) {
    RowBiasIterator iterator(biases, first);
    for (int64_t row = first; row < 9; ++row) EXPECT_EQ(iterator.next(), memory.data() + 10 * want[row]) << row;
  }
  const RowBias individual{memory.data(), 10, 2, 2};
  EXPECT_FALSE(individual.has_shared_bias());
  EXPECT_EQ(individual.biases_per_group(), 2);
  RowBiasIterator iterator(individual, 3);
  EXPECT_EQ(iterator.next(), memory.data() + 30);
  EXPECT_EQ(iterator.next(), memory.data() + 40);
}

TEST(RowSum, MultipliesByItsFactorAndOverwritesOrAdds) {
  const std::vector<float> x{1, 2, 3, 9, 4, 5, 6, 9};
  testing::for_each_isa([&](Isa) {
    std::vector<float> to(3, 100);
    sum_of_rows(x.data(), 4, 2, 3, 0.5F, to.data());
    EXPECT_EQ(to, (std::vector<float>{2.5F, 3.5F, 4.5F}));
    add_rows(x.data(), 4, 2, 3, to.data());
    EXPECT_EQ(to, (std::vector<float>{7.5F, 10.5F, 13.5F}));
  });
}

}  // namespace
}  // namespace vitrail::kernels
