// SPDX-License-Identifier: Apache-2.0
// Sums of cosines and sines and their gradients on every instruction set, against the scalar reference in double.
#include "vitrail/kernels/rowwise/characteristic_sums.h"

#include "tests/kernels/kernel_testing.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_characteristic_sums_internal.h"

namespace vitrail::kernels {
namespace {

using testing::Buffer;
using testing::random_floats;
using testing::widened;

constexpr float kStep = 3.0f / kHarmonics;
constexpr int64_t kSums = 2 * kHarmonics;

// An angle θ has a rounding error of θ 2^-24, which its multiple k has k times; each rotation adds some 2^-23.
double harmonic_error(float spread) { return kHarmonics * (6 * spread * kStep + 8) * 0x1p-24; }

TEST(CharacteristicSums, MatchTheDoubleReferenceOnEveryIsa) {
  testing::for_each_isa([](Isa) {
    for (const int64_t cols : testing::kAwkwardLengths) {
      for (const float spread : {1.0f, 30.0f}) {
        const int64_t views = 2, rows = 5;
        const std::vector<float> u = random_floats(views * rows * cols, 1, spread);
        const std::vector<double> wide = widened(u);
        std::vector<double> want(static_cast<size_t>(views * kSums * cols));
        for (int64_t v = 0; v < views; ++v) {
          scalar::characteristic_sums<double>(wide.data() + v * rows * cols, cols, rows, cols, kStep,
                                              want.data() + v * kSums * cols, cols);
        }
        const Buffer from(u, 1);
        Buffer sums(views * kSums * cols, 3);
        characteristic_sums(from.data(), views, rows, cols, kStep, sums.data());
        sums.check();
        testing::expect_close(sums.values(), want, [&](int64_t) { return rows * harmonic_error(spread); });
      }
    }
  });
}

TEST(CharacteristicSumsBackward, MatchesTheDoubleReferenceOnEveryIsa) {
  testing::for_each_isa([](Isa) {
    for (const int64_t cols : testing::kAwkwardLengths) {
      const int64_t views = 2, rows = 3;
      const std::vector<float> u = random_floats(views * rows * cols, 1), grad = random_floats(views * kSums * cols, 2);
      const std::vector<double> wide = widened(u), wide_grad = widened(grad);
      std::vector<double> want(wide.size());
      for (int64_t v = 0; v < views; ++v) {
        const int64_t at = v * rows * cols;
        scalar::characteristic_sums_backward<double>(wide.data() + at, cols, rows, cols, kStep,
                                                     wide_grad.data() + v * kSums * cols, cols, want.data() + at);
      }
      const Buffer from(u, 1), grad_sums(grad, 3);
      Buffer grad_u(views * rows * cols, 1);
      characteristic_sums_backward(from.data(), views, rows, cols, kStep, grad_sums.data(), grad_u.data());
      grad_u.check();
      // 32 terms with gradients below 5 and multiples of at most 3.
      testing::expect_close(grad_u.values(), want, [&](int64_t) { return 32 * 5 * 3 * harmonic_error(1); });
    }
  });
}

// Angles in all quarters, and the limit that sin_cos() states.
TEST(CharacteristicSums, OfOneRowAreTheCosineAndSine) {
  testing::for_each_isa([](Isa) {
    std::vector<float> angles;
    for (int i = -4000; i <= 4000; ++i) angles.push_back(0.3703f * static_cast<float>(i));
    for (int i = -40; i <= 40; ++i) angles.push_back(147.3f * static_cast<float>(i));
    const auto cols = static_cast<int64_t>(angles.size());
    std::vector<float> sums(static_cast<size_t>(kSums * cols));
    characteristic_sums(angles.data(), 1, 1, cols, 1, sums.data());
    std::vector<double> want;
    for (const float angle : angles) want.push_back(std::cos(static_cast<double>(angle)));
    for (const float angle : angles) want.push_back(std::sin(static_cast<double>(angle)));
    sums.resize(want.size());
    testing::expect_close(sums, want, [](int64_t) { return 1.2e-7; });
  });
}

TEST(CharacteristicSums, PassNanOnAndDoNotDependOnThreads) {
  testing::for_each_isa([](Isa) {
    const int64_t views = 3, rows = 40, cols = 150;
    std::vector<float> u = random_floats(views * rows * cols, 1), sums[2], grads[2];
    for (const int threads : {1, 3}) {
      const ThreadCount count(threads);
      std::vector<float>&sum = sums[threads / 3], &grad = grads[threads / 3];
      sum.resize(static_cast<size_t>(views * kSums * cols));
      grad.resize(u.size());
      characteristic_sums(u.data(), views, rows, cols, kStep, sum.data());
      characteristic_sums_backward(u.data(), views, rows, cols, kStep, sum.data(), grad.data());
    }
    EXPECT_EQ(sums[0], sums[1]);
    EXPECT_EQ(grads[0], grads[1]);
    u[0] = std::numeric_limits<float>::quiet_NaN();
    characteristic_sums(u.data(), views, rows, cols, kStep, sums[0].data());
    for (int64_t k = 0; k < kSums; ++k) {
      EXPECT_TRUE(std::isnan(sums[0][k * cols]));
      EXPECT_FALSE(std::isnan(sums[0][k * cols + 1]));
    }
  });
}

}  // namespace
}  // namespace vitrail::kernels
