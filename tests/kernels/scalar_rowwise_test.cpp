// SPDX-License-Identifier: Apache-2.0
// The scalar references against their formulas: every other test of the kernels relies on them.
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

#include "tests/kernels/kernel_testing.h"
#include "vitrail/kernels/attention/scalar_attention_internal.h"

namespace vitrail::kernels {
namespace {

using testing::kActivations;
using testing::kInfinity;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Values that Python's math module gives.
TEST(ScalarReference, ActivationsHaveTheirValues) {
  struct Case {
    Activation kind;
    std::array<double, 4> values;
  };
  constexpr std::array<double, 4> kAt{-3, -0.5, 1, 2.5};
  for (const auto& [kind, values] :
       {Case{Activation::none, kAt},
        Case{Activation::gelu, {-0.00404969409489031, -0.15426876936299344, 0.8413447460685429, 2.4844758366855597}},
        Case{Activation::gelu_tanh,
             {-0.0036373920817729943, -0.15428599017485606, 0.8411919906082768, 2.484915733910001}},
        Case{Activation::quick_gelu, {-0.01807130970778597, -0.1496115633936199, 0.8457957659328212, 2.46501383495143}},
        Case{Activation::relu, {0, 0, 1, 2.5}},
        Case{Activation::silu, {-0.14227761953270035, -0.1887703343990727, 0.7310585786300049, 2.3103545499468914}},
        Case{Activation::tanh, {-0.9950547536867305, -0.46211715726000974, 0.7615941559557649, 0.9866142981514303}}}) {
    std::array<double, 4> got{};
    scalar::activate_span<double>(kind, kAt.data(), got.data(), 4);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], values[i], 1e-14) << name_of(kind) << " " << kAt[i];
  }
  EXPECT_TRUE(std::isnan(scalar::activate(Activation::relu, kNan)));
}

TEST(ScalarReference, DerivativesAreSlopesAndMultiplyTheGradient) {
  for (const Activation kind : kActivations) {
    for (const double x : {-3.1, -1.0, -0.2, 0.3, 1.7, 4.0}) {
      constexpr double kStep = 1e-5;
      const double slope = (scalar::activate(kind, x + kStep) - scalar::activate(kind, x - kStep)) / (2 * kStep);
      EXPECT_NEAR(scalar::activation_derivative(kind, x), slope, 1e-9) << name_of(kind) << " " << x;
      const double grad = -2.5;
      double out = 0;
      scalar::activation_backward_span(kind, &x, &grad, &out, 1);
      EXPECT_NEAR(out, grad * slope, 1e-8) << name_of(kind) << " " << x;
    }
  }
  EXPECT_EQ(scalar::activation_derivative(Activation::relu, 0.0), 0) << "as PyTorch";
}

TEST(ScalarReference, ElementwiseOperationsAndSums) {
  const std::vector<double> a{1, 2, 3, 4, 5, 6}, b{10, -20, 30, 2, 0.5, -1};
  std::vector<double> out(6);
  scalar::add_span(a.data(), b.data(), out.data(), 6);
  EXPECT_EQ(out, (std::vector<double>{11, -18, 33, 6, 5.5, 5}));
  scalar::multiply_span(a.data(), b.data(), out.data(), 6);
  EXPECT_EQ(out, (std::vector<double>{10, -40, 90, 8, 2.5, -6}));
  scalar::multiply_add_span(a.data(), b.data(), out.data(), 6);
  EXPECT_EQ(out, (std::vector<double>{20, -80, 180, 16, 5, -12}));
  scalar::add_scaled<double>(a.data(), b.data(), nullptr, out.data(), 3);
  EXPECT_EQ(out, (std::vector<double>{11, -18, 33, 16, 5, -12}));
  scalar::add_scaled(a.data(), b.data(), a.data() + 3, out.data(), 3);  // factors 4, 5, 6
  EXPECT_EQ(out, (std::vector<double>{41, -98, 183, 16, 5, -12}));
  std::vector<double> sums(3, 99);
  scalar::sum_rows<double>(a.data(), nullptr, 2, 3, sums.data());
  EXPECT_EQ(sums, (std::vector<double>{5, 7, 9}));
  scalar::sum_rows(a.data(), b.data(), 2, 3, sums.data());
  EXPECT_EQ(sums, (std::vector<double>{18, -37.5, 84}));
  scalar::sum_rows<double>(a.data(), nullptr, 0, 3, sums.data());
  EXPECT_EQ(sums, (std::vector<double>(3)));
  sums = {100, 200};
  scalar::scaled_row_sum(a.data(), 3, 2, 2, 0.5, false, sums.data());  // two columns of rows of three
  EXPECT_EQ(sums, (std::vector<double>{2.5, 3.5}));
  scalar::scaled_row_sum(a.data(), 3, 2, 2, 2.0, true, sums.data());
  EXPECT_EQ(sums, (std::vector<double>{12.5, 17.5}));
}

TEST(ScalarReference, AddBiasAndSiluGate) {
  std::vector<double> x{1, -2, 3}, y(3);
  const std::vector<double> bias{0.5, 1, -4};
  scalar::add_bias_row(Activation::relu, bias.data(), x.data(), y.data(), 3);
  EXPECT_EQ(x, (std::vector<double>{1.5, -1, -1}));
  EXPECT_EQ(y, (std::vector<double>{1.5, 0, 0}));
  scalar::add_bias_row<double>(Activation::relu, bias.data(), x.data(), nullptr, 3);
  EXPECT_EQ(x, (std::vector<double>{2, 0, -5}));
  const std::vector<double> pair{1, -0.5, 10, 100};
  scalar::silu_gate(pair.data(), y.data(), 2);
  EXPECT_NEAR(y[0], 7.310585786300049, 1e-13);
  EXPECT_NEAR(y[1], -18.87703343990727, 1e-13);
}

// Mean 2 and variance 14/3 of (1, 0, 5); with ε = 1/3 the deviation is √5.
TEST(ScalarReference, LayerNormIsTheStandardScoreOfEachRow) {
  const std::vector<double> x{1, 0, 5, 99, 2, 1, 6}, gamma{1, 2, 3}, beta{10, 20, 30};
  const double root = std::sqrt(5.0);
  std::vector<double> y(8, 7);
  scalar::layer_norm<double>(x.data(), 4, nullptr, nullptr, 1.0 / 3, y.data(), 5, 2, 3);
  for (const size_t row : {0, 5}) {
    EXPECT_NEAR(y[row], -1 / root, 1e-15);
    EXPECT_NEAR(y[row + 1], -2 / root, 1e-15);
    EXPECT_NEAR(y[row + 2], 3 / root, 1e-15);
  }
  EXPECT_EQ(y[3], 7);
  scalar::layer_norm_row(x.data(), gamma.data(), beta.data(), 1.0 / 3, y.data(), 3);
  EXPECT_NEAR(y[0], 10 - 1 / root, 1e-14);
  EXPECT_NEAR(y[1], 20 - 4 / root, 1e-14);
  EXPECT_NEAR(y[2], 30 + 9 / root, 1e-14);
}

// The mean square of (1, 0, 5) is 26/3; with ε = 1/3 the root is 3.
TEST(ScalarReference, RmsNormDividesByTheRootOfTheMeanSquare) {
  const std::vector<double> x{1, 0, 5}, gamma{3, 4, -6};
  std::vector<double> y(3);
  scalar::rms_norm_row<double>(x.data(), nullptr, 1.0 / 3, y.data(), 3);
  EXPECT_NEAR(y[0], 1.0 / 3, 1e-15);
  EXPECT_NEAR(y[2], 5.0 / 3, 1e-15);
  scalar::rms_norm_row(x.data(), gamma.data(), 1.0 / 3, y.data(), 3);
  EXPECT_NEAR(y[0], 1, 1e-15);
  EXPECT_EQ(y[1], 0);
  EXPECT_NEAR(y[2], -10, 1e-14);
}

// Σ grad · y, whose derivative by x, gamma and beta the backward passes give.
TEST(ScalarReference, NormGradientsAreDerivatives) {
  constexpr int64_t kCols = 4;
  constexpr double kEps = 0.1, kStep = 1e-5;
  std::vector<double> x{0.3, -1.2, 2.1, 0.4}, gamma{1.5, -0.7, 0.2, 1.1}, beta{0.1, 0.2, 0.3, 0.4};
  const std::vector<double> grad{0.9, -0.3, 1.4, 0.8};
  for (const bool rms : {false, true}) {
    for (const bool with_gamma : {true, false}) {
      const auto loss = [&] {
        std::vector<double> y(kCols);
        const double* const factor = with_gamma ? gamma.data() : nullptr;
        if (rms) {
          scalar::rms_norm_row(x.data(), factor, kEps, y.data(), kCols);
        } else {
          scalar::layer_norm_row(x.data(), factor, beta.data(), kEps, y.data(), kCols);
        }
        double sum = 0;
        for (int64_t c = 0; c < kCols; ++c) sum += grad[c] * y[c];
        return sum;
      };
      const auto slope = [&](double& at) {
        const double before = at;
        at = before + kStep;
        const double above = loss();
        at = before - kStep;
        const double below = loss();
        at = before;
        return (above - below) / (2 * kStep);
      };
      std::vector<double> grad_x(kCols, 50), grad_gamma(kCols, 100), grad_beta(kCols, 200);
      const double* const factor = with_gamma ? gamma.data() : nullptr;
      if (rms) {
        scalar::rms_norm_backward_row(x.data(), factor, kEps, grad.data(), kCols, grad_x.data(), grad_gamma.data());
      } else {
        scalar::layer_norm_backward_row(x.data(), factor, kEps, grad.data(), kCols, grad_x.data(), grad_gamma.data(),
                                        grad_beta.data());
      }
      for (int64_t c = 0; c < kCols; ++c) {
        EXPECT_NEAR(grad_x[c], slope(x[c]), 1e-8) << c << (rms ? " RMS" : "");
        if (with_gamma) {
          EXPECT_NEAR(grad_gamma[c] - 100, slope(gamma[c]), 1e-8) << c << (rms ? " RMS" : "");
        }
        if (!rms) {
          EXPECT_NEAR(grad_beta[c] - 200, slope(beta[c]), 1e-8) << c;
        }
      }
      // Null sums are left out.
      std::vector<double> alone(kCols);
      if (rms) {
        scalar::rms_norm_backward_row<double>(x.data(), factor, kEps, grad.data(), kCols, alone.data(), nullptr);
      } else {
        scalar::layer_norm_backward_row<double>(x.data(), factor, kEps, grad.data(), kCols, alone.data(), nullptr,
                                                nullptr);
      }
      EXPECT_EQ(alone, grad_x);
    }
  }
}

TEST(ScalarReference, SoftmaxHasItsSpecialRows) {
  std::vector<double> x{0, std::log(3.0), -kInfinity};
  std::vector<double> y(3), e(3);
  scalar::softmax_row(x.data(), y.data(), 3);
  EXPECT_NEAR(y[0], 0.25, 1e-15);
  EXPECT_NEAR(y[1], 0.75, 1e-15);
  EXPECT_EQ(y[2], 0);
  const RowExponentials<double> row = exponentials(x.data(), e.data(), 3);
  EXPECT_EQ(row.max, std::log(3.0));
  EXPECT_NEAR(row.sum, 4.0 / 3, 1e-15);
  EXPECT_NEAR(e[0], 1.0 / 3, 1e-15);
  EXPECT_EQ(e[1], 1);
  EXPECT_EQ(e[2], 0);
  x.assign(3, -kInfinity);
  scalar::softmax_row(x.data(), y.data(), 3);
  EXPECT_EQ(y, std::vector<double>(3));
  const RowExponentials<double> masked = exponentials(x.data(), e.data(), 3);
  EXPECT_EQ(masked.max, -kInfinity);
  EXPECT_EQ(masked.sum, 0);
  EXPECT_EQ(e, std::vector<double>(3));
  x = {1, kNan, 2};
  scalar::softmax_row(x.data(), y.data(), 3);
  for (const double value : y) EXPECT_TRUE(std::isnan(value));
  const std::vector<double> two{0, 0, 0, std::log(3.0)};
  std::vector<double> rows(4);
  scalar::softmax(two.data(), rows.data(), 2, 2);
  EXPECT_NEAR(rows[1], 0.5, 1e-15);
  EXPECT_NEAR(rows[3], 0.75, 1e-15);
}

// A quarter turn of the first pair and a half turn of the second, by another row of the table for the second head.
TEST(ScalarReference, RotationsTurnTheirPairs) {
  const std::vector<double> x{1, 2, 3, 4, 5, 6, 7, 8}, table{0, -1, 1, 0, 1, 0, 0, 1};
  std::vector<double> y(8);
  scalar::rotate_halves(x.data(), y.data(), 2, 4, table.data(), 4, 1.0);
  EXPECT_EQ(y, (std::vector<double>{-3, -2, 1, -4, 5, -8, 7, 6}));
  scalar::rotate_halves(x.data(), y.data(), 2, 4, table.data(), 4, -1.0);
  EXPECT_EQ(y, (std::vector<double>{3, -2, -1, -4, 5, 8, 7, -6}));
  scalar::rotate_interleaved(x.data(), y.data(), 2, 4, table.data(), 4, 1.0);
  EXPECT_EQ(y, (std::vector<double>{-2, 1, -3, -4, 5, 6, -8, 7}));
  scalar::rotate_interleaved(x.data(), y.data(), 2, 4, table.data(), 0, -1.0);  // both heads by the first row
  EXPECT_EQ(y, (std::vector<double>{2, -1, -3, -4, 6, -5, -7, -8}));
}

TEST(ScalarReference, AttentionIsTheMeanOfValuesByTheirWeights) {
  // Scores ln 2 · (1, 0) of the keys, plus a bias.
  const double ln2 = std::log(2.0);
  const std::vector<double> q{2, 1}, k{ln2 / 4, ln2 / 2, 77, 0, 0, 77}, v{6, 60, 600, 77, 0, 3, 9, 77};
  std::vector<double> weights(2), out(2);
  scalar::attention_row<double>(q.data(), k.data(), 3, v.data(), 4, 2, 2, 1.0, nullptr, weights.data(), out.data());
  EXPECT_NEAR(weights[0], 2.0 / 3, 1e-15);
  EXPECT_NEAR(weights[1], 1.0 / 3, 1e-15);
  EXPECT_NEAR(out[0], 4, 1e-14);
  EXPECT_NEAR(out[1], 41, 1e-13);
  const std::vector<double> bias{0, 3 * ln2};
  scalar::attention_row(q.data(), k.data(), 3, v.data(), 4, 2, 2, 2.0, bias.data(), weights.data(), out.data());
  EXPECT_NEAR(weights[0], 1.0 / 3, 1e-15);
  EXPECT_NEAR(out[0], 2, 1e-14);
  EXPECT_NEAR(out[1], 22, 1e-13);
}

// Σ grad · out, differentiated by each element of q, k and v.
TEST(ScalarReference, AttentionGradientsAreDerivatives) {
  constexpr int64_t kKeys = 3, kDim = 2, kKeyStride = 3, kValueStride = 4;
  constexpr double kScale = 0.7, kStep = 1e-5;
  std::vector<double> q{0.4, -1.1}, k{0.5, 0.2, 9, -0.6, 1.3, 9, 0.1, -0.8, 9},
      v{1.0, -0.4, 9, 9, 0.3, 2.0, 9, 9, -1.5, 0.6, 9, 9};
  const std::vector<double> grad{1.2, -0.5};
  std::vector<double> weights(kKeys), out(kDim);
  const auto loss = [&] {
    scalar::attention_row<double>(q.data(), k.data(), kKeyStride, v.data(), kValueStride, kKeys, kDim, kScale, nullptr,
                                  weights.data(), out.data());
    return grad[0] * out[0] + grad[1] * out[1];
  };
  const auto slope = [&](double& at) {
    const double before = at;
    at = before + kStep;
    const double above = loss();
    at = before - kStep;
    const double below = loss();
    at = before;
    return (above - below) / (2 * kStep);
  };
  loss();
  std::vector<double> slopes(kKeys), grad_q(kDim, 5), grad_k(kKeys * 5, 100), grad_v(kKeys * 6, 200);
  const std::vector<double> fixed = weights;
  scalar::attention_row_backward(q.data(), k.data(), kKeyStride, v.data(), kValueStride, kKeys, kDim, kScale,
                                 fixed.data(), grad.data(), slopes.data(), grad_q.data(), grad_k.data(), int64_t{5},
                                 grad_v.data(), int64_t{6});
  double sum = 0;
  for (const double each : slopes) sum += each;
  EXPECT_NEAR(sum, 0, 1e-15) << "a softmax does not change with the sum of its scores";
  for (int64_t e = 0; e < kDim; ++e) {
    EXPECT_NEAR(grad_q[e], slope(q[e]), 1e-8) << e;
    for (int64_t s = 0; s < kKeys; ++s) {
      EXPECT_NEAR(grad_k[s * 5 + e] - 100, slope(k[s * kKeyStride + e]), 1e-8) << s << " " << e;
      EXPECT_NEAR(grad_v[s * 6 + e] - 200, slope(v[s * kValueStride + e]), 1e-8) << s << " " << e;
    }
  }
  EXPECT_EQ(grad_k[2], 100);
  EXPECT_EQ(grad_v[2], 200);
}

// Rows of the tables are distances: the last one is the largest that a query can be below, or right of, a key.
TEST(ScalarReference, RelativePositionsAreDistancesInTheGrid) {
  constexpr int64_t kHeight = 2, kWidth = 3;
  const std::vector<double> rows{1, 2, 3}, columns{10, 20, 30, 40, 50};
  for (int64_t token = 0; token < kHeight * kWidth; ++token) {
    const double q = 2;
    std::vector<double> bias(kHeight * kWidth);
    scalar::relative_position_row(&q, int64_t{1}, token, kHeight, kWidth, rows.data(), columns.data(), bias.data());
    for (int64_t key = 0; key < kHeight * kWidth; ++key) {
      const int64_t down = token / kWidth - key / kWidth, right = token % kWidth - key % kWidth;
      EXPECT_EQ(bias[key], 2 * (static_cast<double>(down + 2) + 10 * static_cast<double>(right + 3))) << token;
    }
  }
}

TEST(ScalarReference, Bf16ConversionsGoElementByElement) {
  const std::vector<float> x{1.0f, 1.00390625f, -3.5f};
  std::vector<BFloat16> narrow(3);
  std::vector<float> wide(3);
  scalar::round_to_bf16_span(x.data(), narrow.data(), 3);
  EXPECT_EQ(narrow[1].bits, 0x3f80) << "a tie goes to even";
  scalar::widen_bf16_span(narrow.data(), wide.data(), 3);
  EXPECT_EQ(wide, (std::vector<float>{1, 1, -3.5f}));
}

}  // namespace
}  // namespace vitrail::kernels
