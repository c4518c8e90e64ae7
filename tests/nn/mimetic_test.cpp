// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/mimetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::nn {
namespace {

using testing::error_of;

struct Weights {
  Tensor qkv, proj;
};

Weights weights_of(int64_t channels, int64_t heads, int64_t width, uint64_t key, const MimeticOptions& options = {}) {
  Weights w{Tensor::empty({3 * heads * width, channels}), Tensor::empty({channels, heads * width})};
  mimetic_attention(options, heads, key, w.qkv, w.proj);
  return w;
}

// aᵀ b of two [k, n] blocks of rows: [n, n].
std::vector<double> product(const float* a, const float* b, int64_t k, int64_t n) {
  std::vector<double> result(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < n; ++c) result[r * n + c] += static_cast<double>(a[i * n + r]) * b[i * n + c];
    }
  }
  return result;
}

double mean_diagonal(const std::vector<double>& m, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += m[i * n + i];
  return sum / static_cast<double>(n);
}

double off_diagonal_variance(const std::vector<double>& m, int64_t n) {
  double sum = 0;
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < n; ++c) sum += r == c ? 0 : m[r * n + c] * m[r * n + c];
  }
  return sum / static_cast<double>(n * (n - 1));
}

// The mean of n diagonal entries, each with deviation α/√n, has the deviation α/n.  The variance of n (n − 1) uniform
// draws of variance α²/n has the relative deviation √(4/5) / n, because √(4/5) is that of their squares.
void expect_noisy_identity(const std::vector<double>& m, int64_t n, double noise, double identity) {
  const auto count = static_cast<double>(n);
  EXPECT_NEAR(mean_diagonal(m, n), identity, 4 * noise / count);
  const double variance = noise * noise / count;
  EXPECT_NEAR(off_diagonal_variance(m, n), variance, 4 * 0.9 / count * variance);
}

TEST(Mimetic, ValueTimesProjectionIsNoiseMinusIdentity) {
  constexpr int64_t n = 48;
  const Weights w = weights_of(n, 4, 12, 5);
  const Tensor out = w.proj.transpose(0, 1).contiguous();  // [H·d, C]
  expect_noisy_identity(product(w.qkv.data<float>() + 2 * n * n, out.data<float>(), n, n), n, 0.4, -0.4);
}

TEST(Mimetic, OneHeadsQueryTimesKeyIsNoisePlusIdentity) {
  constexpr int64_t n = 40;
  const Weights w = weights_of(n, 1, n, 5, {.qk_noise = 0.3, .qk_identity = 0.9});
  expect_noisy_identity(product(w.qkv.data<float>(), w.qkv.data<float>() + n * n, n, n), n, 0.3, 0.9);
}

// A narrow head keeps the largest singular values s, as √s in q and in k: rows of q and of k are orthogonal, of equal
// norm, and in descending order.
TEST(Mimetic, AHeadHasTheLargestSingularValues) {
  constexpr int64_t n = 48, heads = 4, d = 12;
  const Weights w = weights_of(n, heads, d, 5);
  const float* const qkv = w.qkv.data<float>();
  for (int64_t h = 0; h < heads; ++h) {
    const float *const q = qkv + h * d * n, *const k = q + n * n;
    auto dot = [](const float* a, const float* b) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
      return sum;
    };
    for (int64_t i = 0; i < d; ++i) {
      EXPECT_NEAR(dot(q + i * n, q + i * n), dot(k + i * n, k + i * n), 1e-5);
      for (int64_t j = 0; j < i; ++j) {
        EXPECT_NEAR(dot(q + i * n, q + j * n), 0, 1e-5);
        EXPECT_NEAR(dot(k + i * n, k + j * n), 0, 1e-5);
        EXPECT_LE(dot(q + i * n, q + i * n), dot(q + j * n, q + j * n) + 1e-5);
      }
    }
    // The identity part is larger than in d arbitrary directions out of n.
    EXPECT_GT(mean_diagonal(product(q, k, d, n), n), 0.7 * d / n);
  }
}

TEST(Mimetic, DependsOnTheKeyAndNotOnThreads) {
  const Weights w = weights_of(24, 3, 8, 5);
  const ThreadCount one(1);
  const Weights again = weights_of(24, 3, 8, 5), other = weights_of(24, 3, 8, 6);
  EXPECT_TRUE(testing::close(w.qkv, again.qkv, 0));
  EXPECT_TRUE(testing::close(w.proj, again.proj, 0));
  EXPECT_FALSE(testing::close(w.qkv, other.qkv, 0));
  EXPECT_FALSE(testing::close(w.qkv.narrow(0, 0, 8), w.qkv.narrow(0, 8, 8), 0));  // each head draws its own
}

TEST(Mimetic, WithoutNoiseAndIdentityIsZero) {
  const Weights w = weights_of(12, 3, 4, 5, {.qk_noise = 0, .qk_identity = 0, .vo_noise = 0, .vo_identity = 0});
  EXPECT_TRUE(testing::close(w.qkv, Tensor::zeros({36, 12}), 0));
  EXPECT_TRUE(testing::close(w.proj, Tensor::zeros({12, 12}), 0));
}

TEST(Mimetic, RejectsShapesThatDoNotMatch) {
  EXPECT_THROW(weights_of(8, 3, 4, 0), Error);
  EXPECT_THROW(mimetic_attention({}, 2, 0, Tensor::zeros({24, 8}), Tensor::zeros({8, 7})), Error);
}

// aᵀ b of rows [k, n] and [k, n].
double product_at(const float* a, const float* b, int64_t k, int64_t n, int64_t r, int64_t c) {
  double sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += static_cast<double>(a[i * n + r]) * b[i * n + c];
  return sum;
}

TEST(Mimetic, DefaultsAreThePapers) {
  EXPECT_EQ(MimeticOptions().qk_noise, 0.7);
  EXPECT_EQ(MimeticOptions().qk_identity, 0.7);
  EXPECT_EQ(MimeticOptions().vo_noise, 0.4);
  EXPECT_EQ(MimeticOptions().vo_identity, 0.4);
}

// Without noise the products are multiples of the identity, in their best approximation of the heads' rank.
TEST(Mimetic, WithoutNoiseProductsAreMultiplesOfTheIdentity) {
  constexpr int64_t n = 6;
  const MimeticOptions options{.qk_noise = 0, .qk_identity = 0.5, .vo_noise = 0, .vo_identity = 0.25};
  const Tensor qkv = Tensor::empty({3 * n, n}), proj = Tensor::empty({n, n});
  mimetic_attention(options, 1, 3, qkv, proj);
  const Tensor out = proj.transpose(0, 1).contiguous();
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < n; ++c) {
      const float* const values = qkv.data<float>();
      EXPECT_NEAR(product_at(values, values + n * n, n, n, r, c), r == c ? 0.5 : 0, 1e-6);
      EXPECT_NEAR(product_at(values + 2 * n * n, out.data<float>(), n, n, r, c), r == c ? -0.25 : 0, 1e-6);
    }
  }
}

// Heads narrower than the model: rows of v and columns of the projection are pairs of equal length.
TEST(Mimetic, NarrowModelsHaveTheirFactorsInPairs) {
  constexpr int64_t n = 10, heads = 2, width = 3, inner = heads * width;
  const Tensor qkv = Tensor::full({3 * inner, n}, 9), proj = Tensor::full({n, inner}, 9);
  mimetic_attention({}, heads, 3, qkv, proj);
  const auto norm = [](const Tensor& t) {
    double sum = 0;
    for (int64_t i = 0; i < t.numel(); ++i) sum += double{t.data<float>()[i]} * t.data<float>()[i];
    return sum;
  };
  const auto row = [&](int64_t i) { return norm(qkv.select(0, i).contiguous()); };
  for (int64_t k = 0; k < inner; ++k) {
    EXPECT_NEAR(row(2 * inner + k), norm(proj.select(1, k).contiguous()), 1e-4);
    EXPECT_NEAR(row(k), row(inner + k), 1e-4) << "a query and its key";
    if (k % width > 0) {
      EXPECT_GE(row(k - 1), row(k) - 1e-4);
    }
    if (k > 0) {
      EXPECT_GE(row(2 * inner + k - 1), row(2 * inner + k) - 1e-4);
    }
  }
}

TEST(Mimetic, ErrorsNameTheWeights) {
  const auto error = [](int64_t heads, const Shape& qkv, const Shape& proj) {
    return error_of([&] { mimetic_attention({}, heads, 0, Tensor::zeros(qkv), Tensor::zeros(proj)); });
  };
  const std::string weights = "mimetic initialisation: expected weights [3·H·d, C] and [C, H·d] of H = ";
  EXPECT_EQ(error(2, {24, 8}, {8, 7}), weights + "2 heads with H·d ≤ C, got [24, 8] and [8, 7]");
  EXPECT_EQ(error(0, {24, 8}, {8, 8}), weights + "0 heads with H·d ≤ C, got [24, 8] and [8, 8]");
  EXPECT_EQ(error(3, {24, 8}, {8, 8}), weights + "3 heads with H·d ≤ C, got [24, 8] and [8, 8]");
  EXPECT_EQ(error(2, {48, 8}, {8, 16}), weights + "2 heads with H·d ≤ C, got [48, 8] and [8, 16]");
}

}  // namespace
}  // namespace vitrail::nn
