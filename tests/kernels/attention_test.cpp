// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/attention/attention.h"

#include <functional>
#include <limits>
#include <thread>

#include "tests/kernels/emulated_microkernels.h"
#include "tests/kernels/kernel_testing.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/attention/attention_heads_internal.h"
#include "vitrail/kernels/attention/scalar_attention_internal.h"

namespace vitrail::kernels {
namespace {

using testing::AttentionSizes;
using testing::Buffer;
using testing::kEps;
using testing::kInfinity;
using testing::random_floats;

Precision precision = Precision::fp32;  // AttentionProblem takes it

// On every instruction set in fp32, and in half precision where attention multiplies 16 bits.
void for_each_kernel(const std::function<void()>& body) {
  testing::for_each_isa([&](Isa) {
    for (const Precision each : {Precision::fp32, Precision::half}) {
      if (each == Precision::half && !active_features().has(Feature::avx512_bf16)) continue;
      SCOPED_TRACE(name_of(each));
      precision = each;
      body();
    }
    precision = Precision::fp32;
  });
}

// q, k and v as a fused projection leaves them: [B, N, 3, H, D] when queries == keys, else three [B, N, H, D].
struct AttentionProblem {
  AttentionSizes s;
  std::vector<float> q, k, v, bias, out, weights;
  AttentionArgs args;

  AttentionProblem(const AttentionSizes& sizes, bool with_bias, bool with_weights, float spread = 1) : s(sizes) {
    const int64_t width = s.heads * s.head_dim;
    out.assign(s.batch * s.queries * width, 7.0f);
    args = {.batch = s.batch, .heads = s.heads, .queries = s.queries, .keys = s.keys, .head_dim = s.head_dim};
    args.scale = 1 / std::sqrt(static_cast<float>(s.head_dim));
    args.precision = precision;
    args.out = {out.data(), s.queries * width, s.head_dim, width};
    if (s.queries == s.keys) {
      q = random_floats(s.batch * s.queries * 3 * width, 1, spread);
      const int64_t token = 3 * width, batch = s.queries * token;
      args.q = {q.data(), batch, s.head_dim, token};
      args.k = {q.data() + width, batch, s.head_dim, token};
      args.v = {q.data() + 2 * width, batch, s.head_dim, token};
    } else {
      q = random_floats(s.batch * s.queries * width, 1, spread);
      k = random_floats(s.batch * s.keys * width, 2, spread);
      v = random_floats(s.batch * s.keys * width, 3);
      args.q = {q.data(), s.queries * width, s.head_dim, width};
      args.k = {k.data(), s.keys * width, s.head_dim, width};
      args.v = {v.data(), s.keys * width, s.head_dim, width};
    }
    if (with_bias) {
      bias = random_floats(s.heads * s.queries * s.keys, 4);
      for (size_t i = 0; i < bias.size(); i += 5) bias[i] = -kInfinity;
      args.bias = {bias.data(), 0, s.queries * s.keys, s.keys};
    }
    if (with_weights) {
      weights.assign(s.batch * s.heads * s.queries * s.keys, 7.0f);
      args.weights = weights.data();
    }
  }
  AttentionProblem(const AttentionProblem&) = delete;

  static std::vector<double> wide(const float* p, int64_t n) { return {p, p + n}; }

  // The definition in double, row by row: weights [B, H, T, S], outputs in the layout of args.out.  With AMX, q and the
  // scaled k are what they are in bf16.
  void expected(std::vector<double>* want_out, std::vector<double>* want_weights) const {
    want_out->assign(out.size(), 0);
    want_weights->assign(s.batch * s.heads * s.queries * s.keys, 0);
    for (int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
      const int64_t t = row % s.queries, h = row / s.queries % s.heads, b = row / s.queries / s.heads;
      auto head = [&](const auto& view) { return view.data + b * view.batch_stride + h * view.head_stride; };
      std::vector<double> query, key, value;
      const auto rounded = [this](float x) { return rounds_scores() ? static_cast<float>(BFloat16(x)) : x; };
      const float key_scale = rounds_scores() ? args.scale : 1;
      for (int64_t e = 0; e < s.head_dim; ++e) query.push_back(rounded(head(args.q)[t * args.q.token_stride + e]));
      for (int64_t j = 0; j < s.keys; ++j) {
        for (int64_t e = 0; e < s.head_dim; ++e) {
          key.push_back(rounded(key_scale * head(args.k)[j * args.k.token_stride + e]));
          value.push_back(head(args.v)[j * args.v.token_stride + e]);
        }
      }
      std::vector<double> mask;
      if (args.bias.data) mask = wide(head(args.bias) + t * args.bias.query_stride, s.keys);
      scalar::attention_row<double>(query.data(), key.data(), s.head_dim, value.data(), s.head_dim, s.keys, s.head_dim,
                                    args.scale / key_scale, mask.empty() ? nullptr : mask.data(),
                                    want_weights->data() + row * s.keys,
                                    want_out->data() + (head(args.out) - out.data()) + t * args.out.token_stride);
    }
  }

  // Scores of standard normal q and k are sums of D products with Σ|q k| scale < 1.5 √D + 4: their error bounds the
  // relative error of a weight, e^ε ≈ 1 + ε; a result is Σ weights · v with |v| < 5 and Σ weights = 1.
  double weight_error() const {
    const double depth = static_cast<double>(s.head_dim);
    const double sum = 1.5 * std::sqrt(depth) + 4;
    // int16 rows have a norm of 32,700 scales or more.  The norm of a query is below √D + 4, that of a key below the
    // norm of the columns' maxima, 5 √D.  A value is off by half a scale, a score by Σ|q| and Σ|k| of these, and a
    // weight by the error of two scores.
    const double root = std::sqrt(depth);
    const double rounding = rounds() && !rounds_scores() ? std::expm1((root + 4) * (6 * root + 4) / 32700) : 0;
    return kEps / 2 * (depth + 4) * sum + kEps * (8 + static_cast<double>(s.keys) / 8) + rounding;
  }
  // The error of an output when v < 5 and the weights are rounded to bf16.
  double rounding_error() const { return rounds() ? 2 * 5 * kBf16Error : 0; }

  static constexpr double kBf16Error = 1.01 / 256;  // relative, including the product of two errors

 private:
  bool rounds() const { return args.precision == Precision::half && active_features().has(Feature::avx512_bf16); }
  bool rounds_scores() const { return rounds() && active_features().has(Feature::amx); }  // q and k, to bf16
};

void check(const AttentionSizes& sizes, bool with_bias, bool with_weights) {
  SCOPED_TRACE(::testing::Message() << sizes.batch << "×" << sizes.heads << " heads, " << sizes.queries << " queries, "
                                    << sizes.keys << " keys of " << sizes.head_dim);
  AttentionProblem problem(sizes, with_bias, with_weights);
  attention(problem.args);
  std::vector<double> out, weights;
  problem.expected(&out, &weights);
  const double relative = problem.weight_error();
  testing::expect_close(problem.out, out, [&](int64_t) { return 5 * relative + problem.rounding_error() + 1e-7; });
  if (with_weights) {
    testing::expect_close(problem.weights, weights, [&](int64_t i) { return relative * weights[i] + 1e-37; });
  }
}

TEST(Attention, MatchesTheDoubleReferenceOnEveryIsaAndSize) {
  for_each_kernel([] {
    for (int64_t n : {1, 2, 5, 6, 7, 13, 16, 17, 33, 50, 65}) {
      for (int64_t head_dim : {1, 3, 8, 16, 20, 32, 64, 80}) check({2, 3, n, n, head_dim}, n % 2 == 0, n % 3 == 0);
    }
    check({1, 1, 197, 197, 64}, true, true);
    check({1, 2, 50, 50, 256}, false, true);
  });
}

// AMX has q and k in bf16.  Here bf16 represents them exactly, and the scale is a power of two.
TEST(Attention, MatchesTheDoubleReferenceOnEmulatedAmxTiles) {
  constexpr AttentionMicrokernels kEmulated{
      &testing::emulated_amx, &testing::emulated_amx, &testing::emulated_amx, false, 32, 16};
  testing::for_each_isa([&](Isa isa) {
    if (!features_of(isa).has(Feature::avx512)) return;  // packs panels of its vectors
    for (const AttentionSizes& sizes :
         {AttentionSizes{1, 2, 33, 33, 64}, AttentionSizes{2, 1, 197, 197, 64}, AttentionSizes{1, 3, 7, 70, 16},
          AttentionSizes{1, 1, 40, 3, 256}, AttentionSizes{1, 2, 1, 65, 64}}) {
      AttentionProblem problem(sizes, sizes.keys % 2 == 0, sizes.keys % 3 == 0);
      for (std::vector<float>* values : {&problem.q, &problem.k, &problem.v}) {
        for (float& value : *values) value = static_cast<float>(BFloat16(value));
      }
      attention_in_bf16(problem.args, kEmulated);
      std::vector<double> out, weights;
      problem.expected(&out, &weights);
      const double relative = problem.weight_error(), rounding = 2 * 5 * AttentionProblem::kBf16Error;
      testing::expect_close(problem.out, out, [&](int64_t) { return 5 * relative + rounding + 1e-7; });
      if (!problem.weights.empty()) {
        testing::expect_close(problem.weights, weights, [&](int64_t i) { return relative * weights[i] + 1e-37; });
      }
    }
  });
}

#if defined(__x86_64__)
TEST(Attention, MultipliesOnAmxTilesWhereTheProcessorHasThem) {
  const AttentionMicrokernels amx = attention_microkernels(features_of(Isa::avx512_amx)),
                              without = attention_microkernels(features_of(Isa::avx512_bf16));
  for (const DotMicrokernel used : {amx.scores_of_fp32, amx.scores_of_bf16, amx.values}) {
    EXPECT_EQ(used, amx_bf16_microkernel());
  }
  EXPECT_FALSE(amx.int16_scores);
  EXPECT_EQ(without.scores_of_fp32, int16_microkernel());
  EXPECT_EQ(without.values, bf16_microkernel());
  EXPECT_TRUE(without.int16_scores);
}
#endif

// Relative positions are a bias that depends on the query.
TEST(Attention, RelativePositionsEqualTheirBias) {
  for_each_kernel([] {
    for (const auto& [height, width, head_dim] :
         {std::array<int64_t, 3>{3, 5, 7}, {14, 14, 64}, {1, 1, 4}, {5, 33, 16}}) {
      SCOPED_TRACE(::testing::Message() << height << "×" << width << " cells, " << head_dim);
      const int64_t tokens = height * width;
      AttentionProblem problem({1, 2, tokens, tokens, head_dim}, false, true);
      const auto rows = random_floats((2 * height - 1) * head_dim, 5, 0.25f);
      const auto columns = random_floats((2 * width - 1) * head_dim, 6, 0.25f);
      std::vector<float> bias;
      for (int64_t i = 0; i < 2 * tokens * tokens; ++i) {
        const int64_t head = i / (tokens * tokens), t = i / tokens % tokens, j = i % tokens;
        const int64_t dy = t / width - j / width + height - 1, dx = t % width - j % width + width - 1;
        const float* const q =
            problem.args.q.data + head * problem.args.q.head_stride + t * problem.args.q.token_stride;
        double sum = 0;
        for (int64_t e = 0; e < head_dim; ++e)
          sum += q[e] * (rows[dy * head_dim + e] + double{columns[dx * head_dim + e]});
        bias.push_back(static_cast<float>(sum));
      }
      problem.args.bias = {bias.data(), 0, tokens * tokens, tokens};
      std::vector<double> out, weights;
      problem.expected(&out, &weights);
      problem.args.bias = {};
      problem.args.positions = {height, width, rows.data(), columns.data()};
      for (const bool with_weights : {true, false}) {
        if (!with_weights) problem.args.weights = nullptr;
        attention(problem.args);
        // |q| and |k| below 5 and tables below 1.25: a product of the tables is rounded like one of q and k.
        const double relative = 2 * problem.weight_error();
        const double error = 5 * relative + problem.rounding_error() + 1e-6;
        for (size_t i = 0; i < static_cast<size_t>(tokens * 2 * head_dim); ++i)
          ASSERT_NEAR(problem.out[i], out[i], error);
        for (size_t i = 0; with_weights && i < bias.size(); ++i) {
          ASSERT_NEAR(problem.weights[i], weights[i], relative * weights[i] + 1e-6);
        }
      }
    }
  });
}

// The tolerances above let a small weight be wrong.  Here a single key has a value that is not zero, so that its weight
// is the output: 1 / keys, or 1 if only its score is large.
TEST(Attention, EveryKeyHasItsWeight) {
  for_each_kernel([] {
    for (const auto& [keys, head_dim] : {std::pair<int64_t, int64_t>{1, 8}, {5, 3}, {16, 20}, {33, 64}, {197, 64}}) {
      for (const bool selected : {false, true}) {
        for (int64_t key = 0; key < keys; ++key) {
          AttentionProblem problem({1, 1, 2, keys, head_dim}, false, false);
          std::fill(problem.q.begin(), problem.q.end(), 0.0f);
          std::fill(problem.k.begin(), problem.k.end(), 0.0f);
          std::fill(problem.v.begin(), problem.v.end(), 0.0f);
          problem.args.scale = 1;
          for (int64_t e = 0; e < head_dim; ++e) problem.v[key * head_dim + e] = selected ? 2.0f : float(keys);
          for (int64_t t = 0; t < 2; ++t) problem.q[t * head_dim] = 8;
          if (selected) problem.k[key * head_dim] = 8;  // e⁶⁴
          attention(problem.args);
          for (const float value : problem.out) {
            // Half precision rounds the weights and their sum to bf16.
            ASSERT_NEAR(value, selected ? 2 : 1, precision == Precision::half ? 2.0 / 256 : 1e-5)
                << key << " of " << keys;
          }
        }
      }
    }
  });
}

TEST(Attention, HalfPrecisionIsTestedHere) {
  const FeatureSet features = features_of(available_isas().back());
  if (!features.has(Feature::avx512_bf16)) GTEST_SKIP() << "needs AVX-512 BF16";
  int kernels = 0;
  for_each_kernel([&kernels] { kernels += precision == Precision::half; });
  EXPECT_EQ(kernels, features.has(Feature::amx) ? 2 : 1);
}

TEST(Attention, TakesMoreKeysOrMoreQueries) {
  for_each_kernel([] {
    check({2, 2, 1, 37, 24}, true, true);
    check({2, 2, 40, 3, 24}, true, true);
    check({1, 2, 3, 1500, 8}, false, true);  // scores of a block are longer than its budget
  });
}

TEST(Attention, FullyMaskedRowGivesZeros) {
  for_each_kernel([] {
    AttentionProblem problem({1, 2, 9, 9, 24}, true, true);
    std::fill_n(problem.bias.data() + 9 * 9 + 4 * 9, 9, -kInfinity);  // head 1, query 4
    attention(problem.args);
    for (int64_t j = 0; j < 9; ++j) EXPECT_EQ(problem.weights[9 * 9 + 4 * 9 + j], 0.0f);
    for (const bool with_weights : {true, false}) {
      if (!with_weights) problem.args.weights = nullptr;
      attention(problem.args);
      for (int64_t e = 0; e < 24; ++e) EXPECT_EQ(problem.out[4 * 48 + 24 + e], 0.0f);
      EXPECT_NE(problem.out[4 * 48], 0.0f);
    }
  });
}

TEST(Attention, NoKeysGiveZeros) {
  for_each_kernel([] {
    AttentionProblem problem({1, 1, 3, 0, 5}, false, false);
    attention(problem.args);
    EXPECT_EQ(problem.out, std::vector<float>(15, 0.0f));
  });
}

TEST(Attention, HugeScoresStayFinite) {
  for_each_kernel([] {
    AttentionProblem problem({1, 1, 20, 20, 16}, false, true, 300.0f);
    attention(problem.args);
    for (int64_t t = 0; t < 20; ++t) {
      double sum = 0;
      for (int64_t j = 0; j < 20; ++j) sum += problem.weights[t * 20 + j];
      EXPECT_NEAR(sum, 1, 20 * kEps);
    }
  });
}

TEST(Attention, TakesANegativeScale) {
  for_each_kernel([] {
    for (const bool with_bias : {false, true}) {
      AttentionProblem problem({1, 2, 9, 40, 16}, with_bias, false);
      problem.args.scale = -problem.args.scale;
      attention(problem.args);
      std::vector<double> out, weights;
      problem.expected(&out, &weights);
      const double tolerance = 5 * problem.weight_error() + problem.rounding_error() + 1e-7;
      testing::expect_close(problem.out, out, [&](int64_t) { return tolerance; });
    }
  });
}

TEST(Attention, PropagatesNaNWhereItReaches) {
  for_each_kernel([] {
    for (const bool with_weights : {true, false}) {
      AttentionProblem in_query({1, 1, 20, 20, 16}, true, with_weights);
      in_query.q[7 * 48 + 2] = std::numeric_limits<float>::quiet_NaN();
      attention(in_query.args);
      for (int64_t i = 0; i < 20 * 16; ++i) EXPECT_EQ(std::isnan(in_query.out[i]), i / 16 == 7) << i;
    }
    AttentionProblem in_value({1, 1, 20, 20, 16}, false, false);
    in_value.q[19 * 48 + 32 + 5] = std::numeric_limits<float>::quiet_NaN();
    attention(in_value.args);
    for (int64_t i = 0; i < 20 * 16; ++i) EXPECT_EQ(std::isnan(in_value.out[i]), i % 16 == 5) << i;
    AttentionProblem in_key({1, 1, 20, 20, 16}, false, false);
    in_key.q[19 * 48 + 16 + 5] = std::numeric_limits<float>::quiet_NaN();
    attention(in_key.args);
    for (float v : in_key.out) EXPECT_TRUE(std::isnan(v));
  });
}

TEST(Attention, WritesNothingOutsideItsHeads) {
  for_each_kernel([] {
    for (int64_t head_dim : {3, 16, 19}) {
      AttentionProblem problem({1, 1, 11, 11, head_dim}, false, false);
      const int64_t stride = head_dim + 2;
      Buffer out(11 * stride, 1);
      std::fill_n(out.data(), 11 * stride, 9.0f);
      problem.args.out = {out.data(), 0, 0, stride};
      attention(problem.args);
      out.check();
      for (int64_t t = 0; t < 11; ++t) {
        EXPECT_EQ(out.data()[t * stride + head_dim], 9.0f);
        EXPECT_EQ(out.data()[t * stride + head_dim + 1], 9.0f);
      }
    }
  });
}

// A thread keeps the packed keys of a head from one task of a call to the next.  Calls of two kinds follow each other
// in every order; none may use the keys of another.
TEST(Attention, CallsOfOtherPrecisionAndKeysPackTheirOwn) {
  testing::for_each_isa([](Isa isa) {
    if (isa != available_isas().back()) return;  // the others would put the kinds' counts of calls far apart
    const ThreadCount count(1);
    precision = Precision::half;
    AttentionProblem narrow({1, 1, 3, 3, 8}, false, false, 2);
    precision = Precision::fp32;
    AttentionProblem wide({1, 1, 3, 3, 8}, false, false, 1);
    std::thread([&] { attention(narrow.args); }).join();
    std::thread([&] { attention(wide.args); }).join();
    const std::vector<float> want_narrow = narrow.out, want_wide = wide.out;
    int wrong = 0;
    auto call = [&](AttentionProblem& problem, const std::vector<float>& want) {
      attention(problem.args);
      wrong += problem.out != want;
    };
    for (int i = 0; i < 2000; ++i) {
      call(wide, want_wide);
      call(narrow, want_narrow);
      call(i < 1000 ? narrow : wide, i < 1000 ? want_narrow : want_wide);
    }
    EXPECT_EQ(wrong, 0);
  });
}

TEST(Attention, BitsDoNotDependOnThreadsAndCallersMayOverlap) {
  for_each_kernel([] {
    std::vector<float> results[3];
    auto run = [&](int threads) {
      ThreadCount count(threads);
      AttentionProblem problem({2, 3, 67, 67, 40}, true, false);
      attention(problem.args);
      results[threads - 1] = problem.out;
    };
    std::thread one(run, 1), two(run, 2), three(run, 3);
    one.join();
    two.join();
    three.join();
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  });
}

}  // namespace
}  // namespace vitrail::kernels
