// SPDX-License-Identifier: Apache-2.0
// Root mean square normalisation and its gradients on every instruction set, against the scalar reference in double.
#include "vitrail/kernels/rowwise/rms_norm.h"

#include "tests/kernels/kernel_testing.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

using testing::Buffer;
using testing::kEps;
using testing::norm_tolerance;
using testing::random_floats;
using testing::widened;

constexpr float kRmsNormEps = 1e-5f;

TEST(RmsNorm, MatchesTheDoubleReferenceOnEveryIsa) {
  testing::for_each_isa([](Isa) {
    for (const int64_t cols : testing::kAwkwardLengths) {
      for (const bool scaled : {true, false}) {
        const int64_t rows = 3;
        const std::vector<float> x = random_floats(rows * cols, 1, 2), gamma = random_floats(cols, 2);
        const std::vector<double> wide = widened(x), wide_gamma = widened(gamma);
        const Buffer from(x, 1), g(gamma, 3);
        Buffer to(rows * cols, 1);
        rms_norm(from.data(), cols, scaled ? g.data() : nullptr, kRmsNormEps, to.data(), cols, rows, cols);
        to.check();
        std::vector<double> want(wide.size());
        for (int64_t r = 0; r < rows; ++r) {
          scalar::rms_norm_row<double>(wide.data() + r * cols, scaled ? wide_gamma.data() : nullptr, kRmsNormEps,
                                       want.data() + r * cols, cols);
        }
        testing::expect_close(to.values(), want, [&](int64_t) { return norm_tolerance(cols); });
      }
    }
  });
}

TEST(RmsNorm, TakesStridesAndItsOwnInput) {
  testing::for_each_isa([](Isa) {
    const int64_t rows = 5, cols = 37, ldx = 40, ldy = 43;
    const std::vector<float> padded = random_floats(rows * ldx, 4);
    std::vector<float> y(rows * ldy, 9.0f), dense, x;
    rms_norm(padded.data(), ldx, nullptr, kRmsNormEps, y.data(), ldy, rows, cols);
    for (int64_t r = 0; r < rows; ++r) {
      x.insert(x.end(), &padded[r * ldx], &padded[r * ldx] + cols);
      dense.insert(dense.end(), &y[r * ldy], &y[r * ldy] + cols);
      for (int64_t c = cols; c < ldy; ++c) EXPECT_EQ(y[r * ldy + c], 9.0f);
    }
    rms_norm(x.data(), cols, nullptr, kRmsNormEps, x.data(), cols, rows, cols);
    EXPECT_EQ(x, dense);
  });
}

TEST(RmsNormBackward, MatchesTheDoubleReferenceOnEveryIsaAndAnyThreads) {
  testing::for_each_isa([](Isa) {
    for (const int64_t cols : {1, 7, 33, 64}) {
      const int64_t rows = 130;
      const std::vector<float> x = random_floats(rows * cols, 1), gamma = random_floats(cols, 2),
                               grad = random_floats(rows * cols, 3);
      const std::vector<double> wide = widened(x), wide_gamma = widened(gamma), wide_grad = widened(grad);
      std::vector<double> want_x(wide.size()), want_gamma(static_cast<size_t>(cols), 0.0);
      for (int64_t r = 0; r < rows; ++r) {
        scalar::rms_norm_backward_row<double>(wide.data() + r * cols, wide_gamma.data(), 1e-2,
                                              wide_grad.data() + r * cols, cols, want_x.data() + r * cols,
                                              want_gamma.data());
      }
      std::vector<float> sums[2];
      for (const int threads : {1, 3}) {
        const ThreadCount count(threads);
        Buffer grad_x(rows * cols, 1), grad_gamma(cols, 1);
        rms_norm_backward(x.data(), gamma.data(), 1e-2f, grad.data(), rows, cols, grad_x.data(), grad_gamma.data());
        grad_x.check();
        grad_gamma.check();
        testing::expect_close(grad_x.values(), want_x, [&](int64_t) { return 100 * norm_tolerance(cols); });
        testing::expect_close(grad_gamma.values(), want_gamma, [&](int64_t) { return kEps * 10 * rows; });
        sums[threads / 3] = grad_gamma.values();
      }
      EXPECT_EQ(sums[0], sums[1]);
    }
  });
}

TEST(RmsNormBackward, TakesNullWeightsAndSums) {
  testing::for_each_isa([](Isa) {
    for (const int64_t cols : {1, 7, 33}) {
      const int64_t rows = 65;
      const std::vector<float> x = random_floats(rows * cols, 1), gamma = random_floats(cols, 2),
                               grad = random_floats(rows * cols, 3);
      const std::vector<double> wide = widened(x), wide_gamma = widened(gamma), wide_grad = widened(grad);
      for (const bool scaled : {false, true}) {
        std::vector<double> want_x(wide.size()), want_gamma(static_cast<size_t>(cols));
        for (int64_t r = 0; r < rows; ++r) {
          scalar::rms_norm_backward_row<double>(wide.data() + r * cols, scaled ? wide_gamma.data() : nullptr, 0.1,
                                                wide_grad.data() + r * cols, cols, want_x.data() + r * cols,
                                                want_gamma.data());
        }
        for (const bool summed : {false, true}) {
          Buffer grad_x(rows * cols, 1), grad_gamma(cols, 1);
          rms_norm_backward(x.data(), scaled ? gamma.data() : nullptr, 0.1f, grad.data(), rows, cols, grad_x.data(),
                            summed ? grad_gamma.data() : nullptr);
          grad_x.check();
          testing::expect_close(grad_x.values(), want_x, [&](int64_t) { return 10 * norm_tolerance(cols); });
          if (summed) {
            testing::expect_close(grad_gamma.values(), want_gamma, [&](int64_t) { return kEps * 10 * rows; });
          }
        }
      }
    }
  });
}

// A term that is lost beside 10⁸ in its own chunk of rows counts in another.
TEST(RmsNormBackward, SumsChunksOf64Rows) {
  testing::for_each_isa([](Isa) {
    const std::vector<float> x(2 * 128, 1.0f);  // x̂ is 1
    std::vector<float> grad(2 * 128, 1.0f), grad_x(2 * 128), grad_gamma(2);
    grad[0] = 1e8f;
    rms_norm_backward(x.data(), nullptr, 0, grad.data(), 128, 2, grad_x.data(), grad_gamma.data());
    EXPECT_EQ(grad_gamma, (std::vector<float>{1e8f + 64, 128}));
  });
}

}  // namespace
}  // namespace vitrail::kernels
