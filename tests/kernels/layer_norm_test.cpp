// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/layer_norm.h"

#include <limits>

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

constexpr float kLayerNormEps = 1e-6f;

std::vector<double> layer_norm_reference(const std::vector<float>& x, const std::vector<float>& gamma,
                                         const std::vector<float>& beta, int64_t rows, int64_t cols) {
  std::vector<double> y(x.size());
  const std::vector<double> wide = widened(x), g = widened(gamma), b = widened(beta);
  scalar::layer_norm<double>(wide.data(), cols, g.empty() ? nullptr : g.data(), b.empty() ? nullptr : b.data(),
                             kLayerNormEps, y.data(), cols, rows, cols);
  return y;
}

TEST(LayerNorm, MatchesTheDoubleReferenceOnEveryIsa) {
  testing::for_each_isa([](Isa) {
    for (int64_t cols : testing::kAwkwardLengths) {
      for (int64_t offset : {0, 1, 3}) {
        const int64_t rows = 3;
        const std::vector<float> x = random_floats(rows * cols, 1, 2), gamma = random_floats(cols, 2),
                                 beta = random_floats(cols, 3);
        const Buffer from(x, offset), g(gamma, offset), b(beta, offset);
        Buffer to(rows * cols, offset);
        layer_norm(from.data(), cols, g.data(), b.data(), kLayerNormEps, to.data(), cols, rows, cols);
        to.check();
        testing::expect_close(to.values(), layer_norm_reference(x, gamma, beta, rows, cols),
                              [&](int64_t) { return norm_tolerance(cols); });
      }
    }
  });
}

TEST(LayerNorm, TakesStridesNullWeightsAndItsOwnInput) {
  testing::for_each_isa([](Isa) {
    const int64_t rows = 7, cols = 37, ldx = 40, ldy = 43;
    const std::vector<float> padded = random_floats(rows * ldx, 4);
    std::vector<float> x;
    for (int64_t r = 0; r < rows; ++r) x.insert(x.end(), &padded[r * ldx], &padded[r * ldx] + cols);
    std::vector<float> y(rows * ldy, 9.0f), dense;
    layer_norm(padded.data(), ldx, nullptr, nullptr, kLayerNormEps, y.data(), ldy, rows, cols);
    for (int64_t r = 0; r < rows; ++r) {
      dense.insert(dense.end(), &y[r * ldy], &y[r * ldy] + cols);
      for (int64_t c = cols; c < ldy; ++c) EXPECT_EQ(y[r * ldy + c], 9.0f);
    }
    testing::expect_close(dense, layer_norm_reference(x, {}, {}, rows, cols),
                          [&](int64_t) { return norm_tolerance(cols); });
    layer_norm(x.data(), cols, nullptr, nullptr, kLayerNormEps, x.data(), cols, rows, cols);
    EXPECT_EQ(x, dense);
  });
}

TEST(LayerNorm, KeepsItsPrecisionFarFromZero) {
  testing::for_each_isa([](Isa) {
    std::vector<float> x = random_floats(768, 5);
    for (float& v : x) v += 1000.0f;
    std::vector<float> y(x.size());
    layer_norm(x.data(), 768, nullptr, nullptr, kLayerNormEps, y.data(), 768, 1, 768);
    // The mean is off by a few ulps of 1000 (6e-5 each), the differences to it are exact.  E[x²] − mean² would be off
    // by ulps of 10⁶ (0.06).
    testing::expect_close(y, layer_norm_reference(x, {}, {}, 1, 768), [](int64_t) { return 6e-4; });
  });
}

TEST(LayerNorm, PropagatesNaNInItsRowOnly) {
  testing::for_each_isa([](Isa) {
    std::vector<float> x = random_floats(3 * 21, 6), y(x.size());
    x[21 + 20] = std::numeric_limits<float>::quiet_NaN();
    layer_norm(x.data(), 21, nullptr, nullptr, kLayerNormEps, y.data(), 21, 3, 21);
    for (int i = 0; i < 63; ++i) EXPECT_EQ(std::isnan(y[i]), i / 21 == 1) << i;
  });
}

TEST(ResidualLayerNorm, AddsAndNormalisesOnEveryIsa) {
  testing::for_each_isa([](Isa) {
    for (int64_t cols : testing::kAwkwardLengths) {
      const int64_t rows = 3;
      const std::vector<float> x = random_floats(rows * cols, 7), y = random_floats(rows * cols, 8),
                               scale = random_floats(cols, 9), gamma = random_floats(cols, 10);
      for (const float* factor : {scale.data(), static_cast<const float*>(nullptr)}) {
        const Buffer from_x(x, 1), from_y(y, 3);
        Buffer out(rows * cols, 1), norm(rows * cols, 3);
        residual_layer_norm(from_x.data(), from_y.data(), factor, gamma.data(), nullptr, kLayerNormEps, out.data(),
                            norm.data(), rows, cols);
        out.check();
        norm.check();
        std::vector<double> want(rows * cols);
        for (int64_t i = 0; i < rows * cols; ++i) want[i] = x[i] + (factor ? double{scale[i % cols]} : 1.0) * y[i];
        testing::expect_close(out.values(), want, [&](int64_t i) {
          return kEps * (std::abs(want[i]) + std::abs(x[i]));  // one rounding of the product, one of the sum
        });
        testing::expect_close(norm.values(), layer_norm_reference(out.values(), gamma, {}, rows, cols),
                              [&](int64_t) { return norm_tolerance(cols); });
        Buffer in_place(x, 1);
        residual_layer_norm(in_place.data(), from_y.data(), factor, gamma.data(), nullptr, kLayerNormEps,
                            in_place.data(), nullptr, rows, cols);
        EXPECT_EQ(in_place.values(), out.values());
      }
    }
  });
}

TEST(ResidualLayerNorm, BitsDoNotDependOnThreads) {
  const int64_t rows = 197, cols = 192;
  const std::vector<float> x = random_floats(rows * cols, 12), y = random_floats(rows * cols, 13);
  testing::for_each_isa([&](Isa) {
    std::vector<float> norms[2];
    for (int threads : {1, 3}) {
      ThreadCount count(threads);
      std::vector<float> out(x.size());
      norms[threads / 3].resize(x.size());
      residual_layer_norm(x.data(), y.data(), nullptr, nullptr, nullptr, kLayerNormEps, out.data(),
                          norms[threads / 3].data(), rows, cols);
    }
    EXPECT_EQ(norms[0], norms[1]);
  });
}

TEST(ResidualLayerNorm, ShiftsByBetaWithAndWithoutGamma) {
  testing::for_each_isa([](Isa) {
    const int64_t rows = 3, cols = 21;
    const std::vector<float> x = random_floats(rows * cols, 7), y = random_floats(rows * cols, 8),
                             gamma = random_floats(cols, 9), beta = random_floats(cols, 10);
    for (const bool scaled : {false, true}) {
      std::vector<float> out(x.size()), norm(x.size());
      residual_layer_norm(x.data(), y.data(), nullptr, scaled ? gamma.data() : nullptr, beta.data(), 0.5f, out.data(),
                          norm.data(), rows, cols);
      std::vector<double> want(x.size());
      const auto wide = widened(out), g = widened(gamma), b = widened(beta);
      scalar::layer_norm<double>(wide.data(), cols, scaled ? g.data() : nullptr, b.data(), 0.5, want.data(), cols, rows,
                                 cols);
      testing::expect_close(norm, want, [&](int64_t) { return norm_tolerance(cols); });
    }
  });
}

TEST(ResidualLayerNorm, MayWriteOverItsSecondOperand) {
  testing::for_each_isa([](Isa) {
    const std::vector<float> x = random_floats(2 * 13, 1), scale = random_floats(13, 2);
    std::vector<float> y = random_floats(2 * 13, 3), out(y.size());
    residual_layer_norm(x.data(), y.data(), scale.data(), nullptr, nullptr, 1, out.data(), nullptr, 2, 13);
    residual_layer_norm(x.data(), y.data(), scale.data(), nullptr, nullptr, 1, y.data(), nullptr, 2, 13);
    EXPECT_EQ(y, out);
  });
}

}  // namespace
}  // namespace vitrail::kernels
