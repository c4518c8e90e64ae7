// SPDX-License-Identifier: Apache-2.0
// The kernels of the backward pass on every instruction set, against the scalar references in double: awkward sizes,
// misaligned pointers, no write outside the result, the same bits with any number of threads.
#include <algorithm>
#include <limits>

#include "tests/kernels/kernel_testing.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/attention/attention.h"
#include "vitrail/kernels/attention/scalar_attention_internal.h"
#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/kernels/rowwise/elementwise.h"
#include "vitrail/kernels/rowwise/layer_norm.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

using testing::AttentionSizes;
using testing::Buffer;
using testing::kActivations;
using testing::kEps;
using testing::random_floats;
using testing::widened;

TEST(Elementwise, AddsAndMultipliesOnEveryIsa) {
  testing::for_each_isa([](Isa) {
    for (const int64_t n : testing::kAwkwardLengths) {
      for (const int64_t offset : {0, 1, 3}) {
        const std::vector<float> a = random_floats(n, 1), b = random_floats(n, 2);
        const Buffer left(a, offset), right(b, offset + 1);
        Buffer sum(n, offset), multiplied(a, offset);
        add(left.data(), right.data(), sum.data(), n);
        multiply(multiplied.data(), right.data(), multiplied.data(), n);  // in place
        sum.check();
        multiplied.check();
        for (int64_t i = 0; i < n; ++i) {
          EXPECT_EQ(sum.data()[i], a[i] + b[i]);
          EXPECT_EQ(multiplied.data()[i], a[i] * b[i]);
        }
      }
    }
  });
}

TEST(SumRows, MatchesTheDoubleReferenceOnEveryIsa) {
  testing::for_each_isa([](Isa) {
    for (const int64_t rows : {0, 1, 127, 128, 129, 300}) {
      for (const int64_t cols : {1, 7, 8, 33}) {
        const std::vector<float> x = random_floats(rows * cols, 1), y = random_floats(rows * cols, 2);
        std::vector<double> sums(cols), weighted_sums(cols);
        for (int64_t i = 0; i < rows * cols; ++i) {
          sums[i % cols] += x[i];
          weighted_sums[i % cols] += static_cast<double>(x[i]) * y[i];
        }
        Buffer plain(cols, 1), weighted(cols, 1);
        sum_rows(x.data(), nullptr, rows, cols, plain.data());
        sum_rows(x.data(), y.data(), rows, cols, weighted.data());
        plain.check();
        weighted.check();
        const double tolerance = 8 * kEps * (1 + static_cast<double>(rows) / 8);
        testing::expect_close(plain.values(), sums, [&](int64_t) { return tolerance; });
        testing::expect_close(weighted.values(), weighted_sums, [&](int64_t) { return tolerance; });
      }
    }
  });
}

TEST(ActivationBackward, MatchesTheDoubleReferenceOnEveryIsa) {
  testing::for_each_isa([](Isa) {
    for (const Activation kind : kActivations) {
      for (const int64_t n : {0, 1, 7, 8, 9, 33, 1000}) {
        const std::vector<float> x = random_floats(n, 1, 3), grad = random_floats(n, 2);
        std::vector<double> expected(n);
        for (int64_t i = 0; i < n; ++i) {
          expected[i] = grad[i] * scalar::activation_derivative<double>(kind, x[i]);
        }
        Buffer out(grad, 1);
        activation_backward(kind, x.data(), out.data(), out.data(), n);  // in place
        out.check();
        // A slope is at most 1.13, made of a dozen operations; exponentials are off by 2 units in the last place.
        testing::expect_close(out.values(), expected, [&](int64_t i) { return 16 * kEps * (1 + std::abs(grad[i])); });
      }
    }
  });
}

TEST(ActivationBackward, FarFromZeroIsTheLimit) {
  testing::for_each_isa([](Isa) {
    const std::vector<float> x{-1000, -40, 40, 1000}, ones(4, 1.0f);
    for (const Activation kind : {Activation::gelu, Activation::gelu_tanh, Activation::quick_gelu, Activation::silu}) {
      std::vector<float> out(4);
      activation_backward(kind, x.data(), ones.data(), out.data(), 4);
      testing::expect_close(out, std::vector<double>{0, 0, 1, 1}, [](int64_t) { return 1e-6; });
    }
  });
}

TEST(AddBias, AddsAndActivatesOnEveryIsa) {
  testing::for_each_isa([](Isa) {
    for (const Activation kind : kActivations) {
      for (const int64_t cols : {1, 7, 8, 9, 33, 192}) {
        const int64_t rows = 5;
        const std::vector<float> x = random_floats(rows * cols, 1), bias = random_floats(cols, 2);
        Buffer sum(x, 1), alone(x, 1), activated(rows * cols, 3);
        add_bias(kind, bias.data(), sum.data(), activated.data(), rows, cols);
        add_bias(kind, bias.data(), alone.data(), nullptr, rows, cols);
        sum.check();
        activated.check();
        std::vector<double> expected(rows * cols);
        for (int64_t i = 0; i < rows * cols; ++i) {
          EXPECT_EQ(sum.data()[i], x[i] + bias[i % cols]);
          EXPECT_EQ(alone.data()[i], sum.data()[i]);
          expected[i] = scalar::activate<double>(kind, sum.data()[i]);
        }
        testing::expect_close(activated.values(), expected, [](int64_t) { return 8 * kEps * 4; });
      }
    }
  });
}

TEST(LayerNormBackward, MatchesTheDoubleReferenceOnEveryIsa) {
  testing::for_each_isa([](Isa) {
    for (const int64_t cols : testing::kAwkwardLengths) {
      const int64_t rows = 70;  // more than a chunk
      if (cols == 0) continue;
      const std::vector<float> x = random_floats(rows * cols, 1), gamma = random_floats(cols, 2),
                               grad = random_floats(rows * cols, 3);
      const float eps = 0.1f;  // one column has variance 0
      std::vector<double> expected_x(rows * cols), expected_gamma(cols), expected_beta(cols);
      const auto wide_x = widened(x), wide_gamma = widened(gamma), wide_grad = widened(grad);
      scalar::layer_norm_backward<double>(wide_x.data(), wide_gamma.data(), eps, wide_grad.data(), rows, cols,
                                          expected_x.data(), expected_gamma.data(), expected_beta.data());
      const Buffer from(x, 1), scale(gamma, 3), at(grad, 2);
      Buffer grad_x(rows * cols, 1), grad_gamma(cols, 1), grad_beta(cols, 1);
      layer_norm_backward(from.data(), scale.data(), eps, at.data(), rows, cols, grad_x.data(), grad_gamma.data(),
                          grad_beta.data());
      for (const Buffer* buffer : {&grad_x, &grad_gamma, &grad_beta}) buffer->check();
      // γ, grad and 1/σ ≤ 3.2 multiply to some 40; sums of 70 rows or `cols` terms.
      const double tolerance = 40 * kEps * (4 + static_cast<double>(cols) / 8);
      testing::expect_close(grad_x.values(), expected_x, [&](int64_t) { return tolerance; });
      testing::expect_close(grad_gamma.values(), expected_gamma, [&](int64_t) { return 70 * tolerance / 4; });
      testing::expect_close(grad_beta.values(), expected_beta, [&](int64_t) { return 70 * 8 * kEps; });
    }
  });
}

TEST(LayerNormBackward, ThreadsDoNotChangeABit) {
  const int64_t rows = 500, cols = 96;
  const std::vector<float> x = random_floats(rows * cols, 1), gamma = random_floats(cols, 2),
                           grad = random_floats(rows * cols, 3);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3}) {
    const ThreadCount count(threads);
    std::vector<float> grad_x(rows * cols), sums(2 * cols);
    layer_norm_backward(x.data(), gamma.data(), 1e-6f, grad.data(), rows, cols, grad_x.data(), sums.data(),
                        sums.data() + cols);
    grad_x.insert(grad_x.end(), sums.begin(), sums.end());
    std::vector<float> bias(cols);
    sum_rows(grad.data(), x.data(), rows, cols, bias.data());
    grad_x.insert(grad_x.end(), bias.begin(), bias.end());
    results.push_back(grad_x);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// bf16 rounds every factor by at most 2⁻⁸ of itself, so that scores of up to 4 are off by at most 3 %, and so are the
// weights; the other roundings are 0.4 % each at most, and by the length of all errors these average out.
void expect_near_by_norm(const std::vector<float>& got, const std::vector<double>& want) {
  double apart = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    apart += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  EXPECT_LE(std::sqrt(apart), 0.03 * std::sqrt(size) + 1e-6);
}

// One attention with its gradients; q, k, v and out are [B, N, H, D], as layers have them.
struct AttentionGradProblem {
  AttentionSizes s;
  int64_t width;
  std::vector<float> q, k, v, grad, bias;
  std::vector<float> grad_q, grad_k, grad_v, grad_scores;
  Precision precision = Precision::fp32;

  explicit AttentionGradProblem(const AttentionSizes& sizes) : s(sizes), width(sizes.heads * sizes.head_dim) {
    q = random_floats(s.batch * s.queries * width, 1);
    k = random_floats(s.batch * s.keys * width, 2);
    v = random_floats(s.batch * s.keys * width, 3);
    grad = random_floats(s.batch * s.queries * width, 4);
    bias = random_floats(s.queries * s.keys, 5);
    if (s.keys > 2) bias[1] = -std::numeric_limits<float>::infinity();
    grad_q.assign(q.size(), 7.0f);
    grad_k.assign(k.size(), 7.0f);
    grad_v.assign(v.size(), 7.0f);
    grad_scores.assign(s.batch * s.heads * s.queries * s.keys, 7.0f);
  }
  float scale() const { return 1 / std::sqrt(static_cast<float>(s.head_dim)); }

  void run() {
    const int64_t of_queries = s.queries * width, of_keys = s.keys * width, dim = s.head_dim;
    AttentionGradArgs args;
    args.forward = {.batch = s.batch,
                    .heads = s.heads,
                    .queries = s.queries,
                    .keys = s.keys,
                    .head_dim = dim,
                    .q = {q.data(), of_queries, dim, width},
                    .k = {k.data(), of_keys, dim, width},
                    .v = {v.data(), of_keys, dim, width},
                    .scale = scale(),
                    .bias = {bias.data(), 0, 0, s.keys},
                    .precision = precision};
    args.grad = {grad.data(), of_queries, dim, width};
    args.grad_q = {grad_q.data(), of_queries, dim, width};
    args.grad_k = {grad_k.data(), of_keys, dim, width};
    args.grad_v = {grad_v.data(), of_keys, dim, width};
    args.grad_scores = grad_scores.data();
    attention_backward(args);
  }

  // In double, one query after another.
  void expect_right() const {
    std::vector<double> want_q(q.size()), want_k(k.size()), want_v(v.size()), weights(s.keys), slopes(s.keys),
        out(s.head_dim), want_scores;
    const auto wq = widened(q), wk = widened(k), wv = widened(v), wg = widened(grad), wb = widened(bias);
    for (int64_t pair = 0; pair < s.batch * s.heads; ++pair) {
      const int64_t b = pair / s.heads, h = pair % s.heads * s.head_dim;
      const int64_t to_keys = b * s.keys * width + h;
      for (int64_t t = 0; t < s.queries; ++t) {
        const int64_t at = (b * s.queries + t) * width + h;
        scalar::attention_row<double>(&wq[at], &wk[to_keys], width, &wv[to_keys], width, s.keys, s.head_dim, scale(),
                                      &wb[t * s.keys], weights.data(), out.data());
        scalar::attention_row_backward<double>(&wq[at], &wk[to_keys], width, &wv[to_keys], width, s.keys, s.head_dim,
                                               scale(), weights.data(), &wg[at], slopes.data(), &want_q[at],
                                               &want_k[to_keys], width, &want_v[to_keys], width);
        want_scores.insert(want_scores.end(), slopes.begin(), slopes.end());
      }
    }
    if (precision == Precision::half && active_features().has(Feature::avx512_bf16)) {
      expect_near_by_norm(grad_q, want_q);
      expect_near_by_norm(grad_k, want_k);
      expect_near_by_norm(grad_v, want_v);
      return expect_near_by_norm(grad_scores, want_scores);
    }
    // Dot products of head_dim terms of order 3 · 3, then sums over queries or keys.
    const double terms = static_cast<double>(s.head_dim + std::max(s.queries, s.keys));
    auto tolerance = [&](int64_t) { return 16 * kEps * (4 + terms / 4); };
    testing::expect_close(grad_q, want_q, tolerance);
    testing::expect_close(grad_k, want_k, tolerance);
    testing::expect_close(grad_v, want_v, tolerance);
    testing::expect_close(grad_scores, want_scores, tolerance);
  }
};

// Below, at and above tiles of 6 and 12, panels of 8, 16 and 32, and blocks of queries.
const std::vector<AttentionSizes> kAttentionSizes{{1, 1, 1, 1, 1},     {2, 3, 5, 7, 3},    {1, 2, 12, 16, 8},
                                                  {2, 1, 13, 17, 9},   {1, 2, 65, 65, 16}, {1, 1, 197, 197, 64},
                                                  {1, 1, 300, 150, 33}};

TEST(AttentionBackward, MatchesTheDoubleReferenceOnEveryIsa) {
  testing::for_each_isa([](Isa) {
    for (const AttentionSizes& sizes : kAttentionSizes) {
      SCOPED_TRACE(::testing::Message() << sizes.queries << " queries, " << sizes.keys << " keys of "
                                        << sizes.head_dim);
      for (const Precision precision : {Precision::fp32, Precision::half}) {
        if (precision == Precision::half && !active_features().has(Feature::avx512_bf16)) continue;
        AttentionGradProblem problem(sizes);
        problem.precision = precision;
        problem.run();
        problem.expect_right();
      }
    }
  });
}

TEST(AttentionBackward, ThreadsDoNotChangeABit) {
  AttentionGradProblem one({2, 3, 65, 65, 16}), three({2, 3, 65, 65, 16});
  {
    const ThreadCount count(1);
    one.run();
  }
  const ThreadCount count(3);
  three.run();
  EXPECT_EQ(one.grad_q, three.grad_q);
  EXPECT_EQ(one.grad_k, three.grad_k);
  EXPECT_EQ(one.grad_v, three.grad_v);
}

// Without gamma and for the gradient of x alone, and with one of the two sums.
TEST(LayerNormBackward, TakesNullWeightsAndSums) {
  testing::for_each_isa([](Isa) {
    for (const int64_t cols : {1, 7, 33}) {
      const int64_t rows = 65;
      const std::vector<float> x = random_floats(rows * cols, 1), gamma = random_floats(cols, 2),
                               grad = random_floats(rows * cols, 3);
      const auto wide_x = widened(x), wide_gamma = widened(gamma), wide_grad = widened(grad);
      for (const bool scaled : {false, true}) {
        std::vector<double> want_x(rows * cols), want_gamma(cols), want_beta(cols);
        scalar::layer_norm_backward<double>(wide_x.data(), scaled ? wide_gamma.data() : nullptr, 0.1f, wide_grad.data(),
                                            rows, cols, want_x.data(), want_gamma.data(), want_beta.data());
        for (const int sums : {0, 1, 2}) {
          Buffer grad_x(rows * cols, 1), grad_gamma(cols, 1), grad_beta(cols, 1);
          layer_norm_backward(x.data(), scaled ? gamma.data() : nullptr, 0.1f, grad.data(), rows, cols, grad_x.data(),
                              sums == 1 ? grad_gamma.data() : nullptr, sums == 2 ? grad_beta.data() : nullptr);
          for (const Buffer* buffer : {&grad_x, &grad_gamma, &grad_beta}) buffer->check();
          const double tolerance = 40 * kEps * (4 + static_cast<double>(cols) / 8);
          testing::expect_close(grad_x.values(), want_x, [&](int64_t) { return tolerance; });
          if (sums == 1) {
            testing::expect_close(grad_gamma.values(), want_gamma, [&](int64_t) { return 20 * tolerance; });
          }
          if (sums == 2) {
            testing::expect_close(grad_beta.values(), want_beta, [&](int64_t) { return 20 * tolerance; });
          }
        }
      }
    }
  });
}

// Without a bias, or with one for each sample and head; strides of the gradients other than those of the operands.
TEST(AttentionBackward, TakesEveryKindOfBiasAndStride) {
  testing::for_each_isa([](Isa) {
    constexpr int64_t kBatch = 2, kHeads = 3, kQueries = 14, kKeys = 19, kDim = 5, kPairs = kBatch * kHeads;
    const auto q = random_floats(kPairs * kQueries * kDim, 1), k = random_floats(kPairs * kKeys * kDim, 2),
               v = random_floats(kPairs * kKeys * kDim, 3), grad = random_floats(kPairs * kQueries * kDim, 4),
               bias = random_floats(kPairs * kQueries * kKeys, 5);
    for (const bool biased : {false, true}) {
      constexpr int64_t kLd = kDim + 2, kOfQueries = kQueries * kLd, kOfKeys = kKeys * kLd;
      std::vector<float> grad_q(kPairs * kOfQueries, 7.0f), grad_k(kPairs * kOfKeys, 7.0f), grad_v = grad_k;
      AttentionGradArgs args;
      args.forward = {.batch = kBatch,
                      .heads = kHeads,
                      .queries = kQueries,
                      .keys = kKeys,
                      .head_dim = kDim,
                      .q = {q.data(), kHeads * kQueries * kDim, kQueries * kDim, kDim},
                      .k = {k.data(), kHeads * kKeys * kDim, kKeys * kDim, kDim},
                      .v = {v.data(), kHeads * kKeys * kDim, kKeys * kDim, kDim},
                      .scale = 0.4f};
      if (biased) args.forward.bias = {bias.data(), kHeads * kQueries * kKeys, kQueries * kKeys, kKeys};
      args.grad = {grad.data(), kHeads * kQueries * kDim, kQueries * kDim, kDim};
      args.grad_q = {grad_q.data(), kHeads * kOfQueries, kOfQueries, kLd};
      args.grad_k = {grad_k.data(), kHeads * kOfKeys, kOfKeys, kLd};
      args.grad_v = {grad_v.data(), kHeads * kOfKeys, kOfKeys, kLd};
      attention_backward(args);
      const auto wq = widened(q), wk = widened(k), wv = widened(v), wg = widened(grad), wb = widened(bias);
      for (int64_t pair = 0; pair < kPairs; ++pair) {
        std::vector<double> want_q(kQueries * kDim), want_k(kKeys * kDim), want_v(kKeys * kDim), weights(kKeys),
            slopes(kKeys), out(kDim);
        for (int64_t t = 0; t < kQueries; ++t) {
          const int64_t row = pair * kQueries + t;
          scalar::attention_row<double>(&wq[row * kDim], &wk[pair * kKeys * kDim], kDim, &wv[pair * kKeys * kDim], kDim,
                                        kKeys, kDim, double{0.4f}, biased ? &wb[row * kKeys] : nullptr, weights.data(),
                                        out.data());
          scalar::attention_row_backward<double>(&wq[row * kDim], &wk[pair * kKeys * kDim], kDim,
                                                 &wv[pair * kKeys * kDim], kDim, kKeys, kDim, double{0.4f},
                                                 weights.data(), &wg[row * kDim], slopes.data(), &want_q[t * kDim],
                                                 want_k.data(), kDim, want_v.data(), kDim);
        }
        for (int64_t t = 0; t < kQueries; ++t) {
          for (int64_t e = 0; e < kLd; ++e) {
            const float got = grad_q[pair * kOfQueries + t * kLd + e];
            EXPECT_NEAR(got, e < kDim ? want_q[t * kDim + e] : 7, 2e-5) << pair << " " << t;
          }
        }
        for (int64_t s = 0; s < kKeys; ++s) {
          for (int64_t e = 0; e < kDim; ++e) {
            EXPECT_NEAR(grad_k[pair * kOfKeys + s * kLd + e], want_k[s * kDim + e], 2e-5) << pair << " " << s;
            EXPECT_NEAR(grad_v[pair * kOfKeys + s * kLd + e], want_v[s * kDim + e], 2e-5) << pair << " " << s;
          }
          EXPECT_EQ(grad_k[pair * kOfKeys + s * kLd + kDim], 7.0f);
          EXPECT_EQ(grad_v[pair * kOfKeys + s * kLd + kDim], 7.0f);
        }
      }
    }
  });
}

TEST(AttentionBackward, OfAMaskedQueryIsZero) {
  testing::for_each_isa([](Isa) {
    AttentionGradProblem problem({1, 1, 5, 9, 4});
    std::fill_n(problem.bias.begin() + 2 * 9, 9, -std::numeric_limits<float>::infinity());
    problem.run();
    for (int64_t e = 0; e < 4; ++e) EXPECT_EQ(problem.grad_q[2 * 4 + e], 0) << e;
    for (int64_t s = 0; s < 9; ++s) EXPECT_EQ(problem.grad_scores[2 * 9 + s], 0) << s;
    EXPECT_NE(problem.grad_q[3 * 4], 0);
  });
}

// Results that depend on no query or key have gradients of 0, which are written like others.
TEST(AttentionBackward, WithoutKeysOrQueriesIsZero) {
  testing::for_each_isa([](Isa) {
    for (const AttentionSizes& sizes : {AttentionSizes{2, 3, 4, 0, 5}, AttentionSizes{2, 3, 0, 2, 5}}) {
      AttentionGradProblem problem(sizes);
      problem.run();
      EXPECT_EQ(problem.grad_q, std::vector<float>(problem.q.size())) << sizes.keys << " keys";
      EXPECT_EQ(problem.grad_k, std::vector<float>(problem.k.size())) << sizes.keys << " keys";
      EXPECT_EQ(problem.grad_v, std::vector<float>(problem.v.size())) << sizes.keys << " keys";
    }
  });
}

// A term that is lost beside 10⁸ in its own chunk of rows counts in another: each chunk is summed before the chunks.
TEST(SumRows, SumsChunksOf128Rows) {
  testing::for_each_isa([](Isa) {
    std::vector<float> x(2 * 256, 1.0f), sums(2);
    x[0] = 1e8f;
    for (const int threads : {1, 2}) {
      const ThreadCount count(threads);
      sum_rows(x.data(), nullptr, 256, 2, sums.data());
      EXPECT_EQ(sums, (std::vector<float>{1e8f + 128, 256})) << threads;
      sum_rows(x.data(), std::vector<float>(2 * 256, 1.0f).data(), 256, 2, sums.data());
      EXPECT_EQ(sums, (std::vector<float>{1e8f + 128, 256})) << threads;
    }
  });
}

TEST(LayerNormBackward, SumsChunksOf64Rows) {
  testing::for_each_isa([](Isa) {
    std::vector<float> x(2 * 128), grad(2 * 128, 1.0f), grad_x(2 * 128), grad_gamma(2), grad_beta(2);
    for (size_t i = 0; i < x.size(); i += 2) x[i] = 1;  // x̂ is 1 and −1
    for (size_t i = 1; i < x.size(); i += 2) x[i] = -1;
    grad[0] = 1e8f;
    layer_norm_backward(x.data(), nullptr, 0, grad.data(), 128, 2, grad_x.data(), grad_gamma.data(), grad_beta.data());
    EXPECT_EQ(grad_beta, (std::vector<float>{1e8f + 64, 128}));
    EXPECT_EQ(grad_gamma, (std::vector<float>{1e8f + 64, -128}));
  });
}

}  // namespace
}  // namespace vitrail::kernels
