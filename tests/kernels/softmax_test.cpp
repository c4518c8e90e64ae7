// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/softmax.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/exponentials.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

using testing::Buffer;
using testing::kEps;
using testing::kInfinity;
using testing::random_floats;

std::vector<double> softmax_reference(const std::vector<float>& x, int64_t rows, int64_t cols) {
  std::vector<double> y(x.begin(), x.end());
  scalar::softmax<double>(y.data(), y.data(), rows, cols);
  return y;
}

// x − max is rounded (|x| < 64: 2^-19 at most, a relative error of the exponential), e^x is 2 ulp, the sum's terms are
// positive, so its relative error is that of its terms and cols/8 roundings; the smallest results are cut to 0.
double softmax_tolerance(double y, int64_t cols) {
  return std::abs(y) * (64 * kEps / 2 + kEps * (6 + static_cast<double>(cols) / 4)) + 3e-38;
}

TEST(Softmax, MatchesTheDoubleReferenceOnEveryIsa) {
  testing::for_each_isa([](Isa) {
    for (int64_t cols : testing::kAwkwardLengths) {
      for (int64_t offset : {0, 1, 3}) {
        const std::vector<float> x = random_floats(4 * cols, 1, 8);
        const Buffer from(x, offset);
        Buffer to(4 * cols, offset), same(x, offset);
        softmax(from.data(), to.data(), 4, cols);
        softmax(same.data(), same.data(), 4, cols);
        to.check();
        same.check();
        const std::vector<double> want = softmax_reference(x, 4, cols);
        testing::expect_close(to.values(), want, [&](int64_t i) { return softmax_tolerance(want[i], cols); });
        EXPECT_EQ(to.values(), same.values());
      }
    }
  });
}

TEST(Softmax, MaskedElementsGetZeroAndAFullyMaskedRowGivesZeros) {
  testing::for_each_isa([](Isa) {
    const int64_t cols = 21;
    std::vector<float> x = random_floats(2 * cols, 2);
    std::fill(x.begin(), x.begin() + cols, -kInfinity);
    for (int64_t c = 0; c < cols; c += 2) x[cols + c] = -kInfinity;
    softmax(x.data(), x.data(), 2, cols);
    float sum = 0;
    for (int64_t c = 0; c < cols; ++c) {
      EXPECT_EQ(x[c], 0.0f);
      EXPECT_EQ(x[cols + c] == 0.0f, c % 2 == 0);
      sum += x[cols + c];
    }
    EXPECT_NEAR(sum, 1.0f, 8 * kEps);
  });
}

TEST(Softmax, HugeScoresNeitherOverflowNorVanish) {
  testing::for_each_isa([](Isa) {
    std::vector<float> x{3e38f, 3e38f, -3e38f, 0.0f, 0.0f};
    softmax(x.data(), x.data(), 1, 5);
    EXPECT_EQ(x, (std::vector<float>{0.5f, 0.5f, 0, 0, 0}));
  });
}

TEST(Softmax, PropagatesNaNAlsoAmongMaskedElements) {
  testing::for_each_isa([](Isa) {
    for (int64_t at : {0, 7, 20}) {
      for (float filler : {-kInfinity, 1.0f}) {
        std::vector<float> x(21, filler);
        x[at] = std::numeric_limits<float>::quiet_NaN();
        softmax(x.data(), x.data(), 1, 21);
        for (float v : x) EXPECT_TRUE(std::isnan(v));
      }
    }
  });
}

TEST(Softmax, BitsDoNotDependOnThreads) {
  const std::vector<float> x = random_floats(197 * 197, 3, 4);
  testing::for_each_isa([&](Isa) {
    std::vector<float> one(x.size()), three(x.size());
    {
      ThreadCount threads(1);
      softmax(x.data(), one.data(), 197, 197);
    }
    ThreadCount threads(3);
    softmax(x.data(), three.data(), 197, 197);
    EXPECT_EQ(one, three);
  });
}

// Beside the exponentials of such a row, that of 0 would be all.
TEST(Softmax, OfScoresFarBelowZeroIsThatOfTheirDifferences) {
  testing::for_each_isa([](Isa) {
    for (const int64_t cols : testing::kAwkwardLengths) {
      if (cols == 0) continue;
      for (const float shift : {-300.0f, -3e4f}) {
        std::vector<float> x(cols), e(cols);
        for (int64_t c = 0; c < cols; ++c) x[c] = shift - static_cast<float>(c % 4);
        const std::vector<double> want = softmax_reference(x, 1, cols);
        std::vector<float> y(cols);
        softmax(x.data(), y.data(), 1, cols);
        testing::expect_close(y, want, [&](int64_t i) { return softmax_tolerance(want[i], cols); });
        const RowExponentials<float> row = exponentials(x.data(), e.data(), cols);
        EXPECT_EQ(row.max, shift) << cols;
        for (int64_t c = 0; c < cols; ++c)
          EXPECT_NEAR(e[c] / row.sum, want[c], softmax_tolerance(want[c], cols)) << cols;
      }
    }
  });
}

TEST(Exponentials, OfAMaskedRowAreZeros) {
  testing::for_each_isa([](Isa) {
    for (const int64_t cols : {1, 5, 16, 21}) {
      const std::vector<float> x(cols, -kInfinity);
      std::vector<float> e(cols, 7);
      const RowExponentials<float> row = exponentials(x.data(), e.data(), cols);
      EXPECT_EQ(row.max, -kInfinity);
      EXPECT_EQ(row.sum, 0);
      EXPECT_EQ(e, std::vector<float>(cols, 0.0f));
    }
  });
}

// Exponentials below 2⁻¹²⁵ are cut to 0; those above keep their relative precision.
TEST(Exponentials, AreCutWhereTheyEndToBeNormal) {
  testing::for_each_isa([](Isa isa) {
    std::vector<float> x{0};
    for (int i = 1; i <= 173; ++i) x.push_back(-0.5f * static_cast<float>(i));  // down to −86.5
    const auto n = static_cast<int64_t>(x.size());
    std::vector<float> e(x.size());
    const RowExponentials<float> row = exponentials(x.data(), e.data(), n);
    EXPECT_EQ(row.max, 0);
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double want = std::exp(double{x[i]});
      EXPECT_NEAR(e[i], want, 2e-5 * want) << x[i];
      sum += want;
    }
    EXPECT_NEAR(row.sum, sum, 1e-5 * sum);
    if (isa == Isa::scalar) return;  // takes the library's exponential
    for (float& value : x) value -= 86.8f;
    x[0] = 0;
    exponentials(x.data(), e.data(), n);
    EXPECT_EQ(e[0], 1);
    for (int64_t i = 1; i < n; ++i) EXPECT_EQ(e[i], 0) << x[i];
  });
}

}  // namespace
}  // namespace vitrail::kernels
