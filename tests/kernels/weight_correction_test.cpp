// SPDX-License-Identifier: Apache-2.0
// What rounding has left of a weight, for tokens that are read alone and for the others' mean.
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

// y = Q x + E z + b of all rows in double precision, z being x or the mean of an image's tokens that are not read
// alone.
std::vector<double> expected(const Problem& problem, const std::vector<float>& rest, int64_t every, int64_t alone) {
  std::vector<double> y(static_cast<size_t>(problem.rows * problem.out));
  for (int64_t r = 0; r < problem.rows; ++r) {
    const int64_t image = r / every * every;
    for (int64_t c = 0; c < problem.out; ++c) {
      double sum = problem.bias[c];
      for (int64_t p = 0; p < problem.in; ++p) {
        double z = problem.x[r * problem.in + p];
        if (r - image >= alone) {
          z = 0;
          for (int64_t t = image + alone; t < image + every; ++t) z += problem.x[t * problem.in + p];
          z /= static_cast<double>(every - alone);
        }
        sum +=
            double{problem.weight[c * problem.in + p]} * problem.x[r * problem.in + p] + rest[c * problem.in + p] * z;
      }
      y[r * problem.out + c] = sum;
    }
  }
  return y;
}

// Whole numbers in x and the weight, which int8 holds: what is off is the rest's product, by its own rounding.
TEST(WeightCorrection, IsMultipliedByTokensThatAreReadAloneAndByTheOthersMean) {
  struct Case {
    int64_t images, every, alone, in, out;
  };
  for (const auto& [images, every, alone, in, out] :
       {Case{1, 197, 1, 48, 70}, Case{3, 33, 2, 21, 33}, Case{2, 60, 0, 16, 32}, Case{4, 1, 1, 40, 9},
        Case{5, 2, 1, 8, 3}, Case{2, 3, 5, 12, 40}, Case{1, 70, 1, 900, 40}}) {
    Problem problem(images * every, in, out);
    for (int64_t i = 0; i < images * every * in; ++i) {
      problem.x[i] = i % in == 0 ? -100.0F : i % in == 1 ? 155.0F : static_cast<float>(i * 37 % 255 - 100);
    }
    for (int64_t i = 0; i < out * in; ++i) {
      problem.weight[i] = i % in == 2 ? 127.0F : static_cast<float>(i * 29 % 253 - 126);
    }
    const std::vector<float> left = testing::random_floats(out * in, 5, 0.4F);
    const std::vector<double> want = expected(problem, left, every, alone);
    testing::for_each_isa([&](Isa) {
      const PackedLinear whole(problem.weight.data(), problem.bias.data(), out, in, Precision::int8);
      ASSERT_TRUE(whole.takes_correction());
      const PackedLinear error(left.data(), problem.bias.data(), out, in, Precision::int8);
      for (const int64_t stride : {int64_t{0}, every}) {
        const std::vector<float> got = testing::run(whole, problem, {.stride = stride},
                                                    {.error = &error, .group_rows = every, .individual_rows = alone});
        // Steps of 255 / 255 for x and of some 1.5 / 127 for the rest: half of each, times what it is multiplied by.
        const double tolerance = static_cast<double>(in) * (0.5 * 0.4 + 155 * 0.5 * 1.8 / 127);
        double squares = 0;
        for (size_t i = 0; i < want.size(); ++i) {
          ASSERT_NEAR(got[i], want[i], tolerance) << i << " of " << every << " " << alone;
          squares += (got[i] - want[i]) * (got[i] - want[i]);
        }
        // Errors of both signs: far below what they could add up to, and below what E x would move.
        EXPECT_LT(std::sqrt(squares / static_cast<double>(want.size())), tolerance / 5) << every;
      }
    });
  }
}

TEST(WeightCorrection, TheSameBitsWithAnyNumberOfThreads) {
  const Problem problem(2 * 197, 64, 96);
  const std::vector<float> left = testing::random_floats(96 * 64, 5, 0.01F);
  const PackedLinear whole(problem.weight.data(), problem.bias.data(), 96, 64, Precision::int8);
  const PackedLinear error(left.data(), problem.bias.data(), 96, 64, Precision::int8);
  const WeightCorrection correction{.error = &error, .group_rows = 197, .individual_rows = 1};
  const std::vector<float> here = testing::run(whole, problem, {.stride = 197}, correction);
  for (const int threads : {1, 2, 3}) {
    const ThreadCount count(threads);
    EXPECT_EQ(testing::run(whole, problem, {.stride = 197}, correction), here) << threads;
  }
}

TEST(WeightCorrection, OtherPrecisionsHaveNone) {
  const Problem problem(3, 8, 8);
  for (const Precision precision : {Precision::fp32, Precision::half}) {
    EXPECT_FALSE(PackedLinear(problem.weight.data(), nullptr, 8, 8, precision).takes_correction());
  }
}

}  // namespace
}  // namespace vitrail::kernels
