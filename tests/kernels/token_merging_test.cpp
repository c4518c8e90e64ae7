// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/attention/token_merging.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/kernels/kernel_testing.h"

namespace vitrail::kernels {
namespace {

using testing::for_each_isa;

constexpr int64_t kWidth = 5, kKeyHeads = 2, kDim = 3;

struct MergedRows {
  std::vector<float> rows, sizes;
};

// One sample, by the definition: sources are even tokens, destinations odd ones.
MergedRows merged_by_definition(int64_t tokens, int64_t merged, int64_t prefix, const std::vector<float>& keys,
                                const std::vector<float>& x, const std::vector<float>& sizes) {
  std::vector<int64_t> sources, destinations;
  for (int64_t i = prefix; i < tokens; ++i) (i % 2 == 0 ? sources : destinations).push_back(i);
  const auto mean_key = [&](int64_t token) {
    std::vector<double> key(kDim);
    for (int64_t h = 0; h < kKeyHeads; ++h) {
      for (int64_t e = 0; e < kDim; ++e) key[e] += keys[(h * tokens + token) * kDim + e];
    }
    return key;
  };
  const auto cosine = [&](int64_t a, int64_t b) {
    const std::vector<double> p = mean_key(a), q = mean_key(b);
    const auto dot = [](const auto& u, const auto& v) {
      return std::inner_product(u.begin(), u.end(), v.begin(), 0.0);
    };
    return dot(p, q) / std::sqrt(dot(p, p) * dot(q, q));
  };
  std::vector<int64_t> partner(tokens, -1);
  std::vector<double> best(tokens, -2);
  for (const int64_t s : sources) {
    for (const int64_t d : destinations) {
      // Cosines that are equal but for rounding belong to the first.
      if (cosine(s, d) > best[s] + 1e-9) best[s] = cosine(s, d), partner[s] = d;
    }
  }
  std::vector<int64_t> order = sources;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return best[a] > best[b] + 1e-9; });
  std::vector<double> sums(static_cast<size_t>(tokens * kWidth)), weights(sizes.begin(), sizes.end());
  for (int64_t i = 0; i < tokens * kWidth; ++i) sums[i] = static_cast<double>(x[i]) * sizes[i / kWidth];
  std::vector<bool> gone(tokens);
  for (int64_t k = 0; k < merged; ++k) {
    const int64_t s = order[k], d = partner[s];
    gone[s] = true;
    weights[d] += sizes[s];
    for (int64_t c = 0; c < kWidth; ++c) sums[d * kWidth + c] += static_cast<double>(x[s * kWidth + c]) * sizes[s];
  }
  std::vector<int64_t> kept(prefix);
  std::iota(kept.begin(), kept.end(), int64_t{0});
  std::copy_if(sources.begin(), sources.end(), std::back_inserter(kept), [&](int64_t s) { return !gone[s]; });
  kept.insert(kept.end(), destinations.begin(), destinations.end());
  MergedRows result;
  for (const int64_t token : kept) {
    result.sizes.push_back(static_cast<float>(weights[token]));
    for (int64_t c = 0; c < kWidth; ++c)
      result.rows.push_back(static_cast<float>(sums[token * kWidth + c] / weights[token]));
  }
  return result;
}

void expect_definition(int64_t tokens, int64_t merged, int64_t prefix, const std::vector<float>& keys) {
  std::vector<float> x(static_cast<size_t>(tokens * kWidth)), sizes(static_cast<size_t>(tokens));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 23) - 11;
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = static_cast<float>(1 + i % 3);
  const MergedRows want = merged_by_definition(tokens, merged, prefix, keys, x, sizes);
  std::vector<float> out(want.rows.size()), out_sizes(want.sizes.size()), log_sizes(want.sizes.size());
  merge_tokens({.batch = 1,
                .tokens = tokens,
                .width = kWidth,
                .merged = merged,
                .prefix = prefix,
                .heads = kKeyHeads,
                .head_dim = kDim,
                .keys = {keys.data(), kKeyHeads * tokens * kDim, tokens * kDim, kDim},
                .x = x.data(),
                .sizes = sizes.data(),
                .out = out.data(),
                .out_sizes = out_sizes.data(),
                .out_log_sizes = log_sizes.data()});
  EXPECT_EQ(out_sizes, want.sizes) << tokens << " tokens, " << merged << " merged, prefix " << prefix;
  for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], want.rows[i], 1e-4) << i;
  for (size_t i = 0; i < log_sizes.size(); ++i) EXPECT_NEAR(log_sizes[i], std::log(want.sizes[i]), 1e-6) << i;
}

TEST(TokenMergingKernel, IsItsDefinition) {
  for_each_isa([](Isa) {
    for (const int64_t prefix : {0, 1, 2, 3}) {
      for (const int64_t tokens : {6, 9, 17, 40}) {
        std::vector<float> keys(static_cast<size_t>(kKeyHeads * tokens * kDim));
        for (size_t i = 0; i < keys.size(); ++i) keys[i] = std::sin(static_cast<float>(i * i % 97) + 0.1F);
        const int64_t max = max_mergeable(tokens, prefix);
        for (const int64_t merged : {int64_t{0}, int64_t{1}, max / 2, max}) {
          expect_definition(tokens, merged, prefix, keys);
        }
      }
    }
  });
}

// The first of equally similar tokens are merged, into the first of equally similar ones.
TEST(TokenMergingKernel, OfEqualTokensTheFirstAreMerged) {
  for_each_isa([](Isa) {
    for (const int64_t prefix : {0, 1}) {
      const std::vector<float> keys(static_cast<size_t>(kKeyHeads * 12 * kDim), 1.0F);
      for (const int64_t merged : {1, 2, 4}) expect_definition(12, merged, prefix, keys);
    }
  });
}

TEST(TokenMergingKernel, AtMostHalfOfTheTokensBehindThePrefixDisappear) {
  EXPECT_EQ(max_mergeable(8, 0), 4);
  EXPECT_EQ(max_mergeable(7, 0), 3);
  EXPECT_EQ(max_mergeable(8, 1), 3);
  EXPECT_EQ(max_mergeable(7, 5), 1);
  EXPECT_EQ(max_mergeable(6, 5), 0);
  EXPECT_EQ(max_mergeable(5, 5), 0);
  EXPECT_EQ(max_mergeable(3, 5), 0);
}

// Samples of a batch, keys in a fused projection [B, N, 3, H, D], and no sizes: as each sample alone.
TEST(TokenMergingKernel, SamplesAreMergedByTheirOwnKeys) {
  for_each_isa([](Isa) {
    constexpr int64_t kBatch = 3, kTokens = 11, kMerged = 3, kPrefix = 1, kLeft = kTokens - kMerged;
    constexpr int64_t kToken = 3 * kKeyHeads * kDim;
    const std::vector<float> qkv = testing::random_floats(kBatch * kTokens * kToken, 1),
                             x = testing::random_floats(kBatch * kTokens * kWidth, 2);
    std::vector<float> out(kBatch * kLeft * kWidth), sizes(kBatch * kLeft), log_sizes(kBatch * kLeft);
    merge_tokens({.batch = kBatch,
                  .tokens = kTokens,
                  .width = kWidth,
                  .merged = kMerged,
                  .prefix = kPrefix,
                  .heads = kKeyHeads,
                  .head_dim = kDim,
                  .keys = {qkv.data() + kKeyHeads * kDim, kTokens * kToken, kDim, kToken},
                  .x = x.data(),
                  .out = out.data(),
                  .out_sizes = sizes.data(),
                  .out_log_sizes = log_sizes.data()});
    for (int64_t b = 0; b < kBatch; ++b) {
      std::vector<float> keys;
      for (int64_t h = 0; h < kKeyHeads; ++h) {
        for (int64_t t = 0; t < kTokens; ++t) {
          const auto at = qkv.begin() + (b * kTokens + t) * kToken + (kKeyHeads + h) * kDim;
          keys.insert(keys.end(), at, at + kDim);
        }
      }
      const std::vector<float> own(x.begin() + b * kTokens * kWidth, x.begin() + (b + 1) * kTokens * kWidth);
      const MergedRows want =
          merged_by_definition(kTokens, kMerged, kPrefix, keys, own, std::vector<float>(kTokens, 1.0F));
      for (int64_t i = 0; i < kLeft; ++i) {
        EXPECT_EQ(sizes[b * kLeft + i], want.sizes[i]) << b << " " << i;
        EXPECT_NEAR(log_sizes[b * kLeft + i], std::log(want.sizes[i]), 1e-6) << b << " " << i;
      }
      for (int64_t i = 0; i < kLeft * kWidth; ++i) {
        EXPECT_NEAR(out[b * kLeft * kWidth + i], want.rows[i], 1e-5) << b << " " << i;
      }
    }
  });
}

// A key of zeros has the similarity 0 to all, which is above that of keys in opposite directions.
TEST(TokenMergingKernel, AKeyOfZerosIsLikeNoOther) {
  for_each_isa([](Isa) {
    constexpr int64_t kTokens = 6;
    const std::vector<float> keys{-1, 0, 1, 0, 0, 0, 2, 0, 3, 0, 1, 0};  // token 0 has the cosine −1, 2 has 0, 4 has 1
    const std::vector<float> x{10, 11, 12, 13, 14, 15};
    for (const int64_t merged : {1, 2}) {
      std::vector<float> out(kTokens - merged), sizes(kTokens - merged), log_sizes(kTokens - merged);
      merge_tokens({.batch = 1,
                    .tokens = kTokens,
                    .width = 1,
                    .merged = merged,
                    .heads = 1,
                    .head_dim = 2,
                    .keys = {keys.data(), 0, 0, 2},
                    .x = x.data(),
                    .out = out.data(),
                    .out_sizes = sizes.data(),
                    .out_log_sizes = log_sizes.data()});
      if (merged == 1) {  // token 4 joins the first of its equals, token 1
        EXPECT_EQ(out, (std::vector<float>{10, 12, 12.5F, 13, 15}));
        EXPECT_EQ(sizes, (std::vector<float>{1, 1, 2, 1, 1}));
      } else {
        EXPECT_EQ(out[0], 10) << "the opposite key stays";
        EXPECT_NEAR(out[1], 37.0 / 3, 1e-5);  // tokens 1, 2 and 4
        EXPECT_EQ(sizes, (std::vector<float>{1, 3, 1, 1}));
      }
    }
  });
}

TEST(TokenMergingKernel, KeysThatAreNotANumberMergeLast) {
  for_each_isa([](Isa) {
    std::vector<float> keys(6, 1.0F);
    keys[0] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> x{10, 11, 12, 13, 14, 15};
    std::vector<float> out(5), sizes(5), log_sizes(5);
    merge_tokens({.batch = 1,
                  .tokens = 6,
                  .width = 1,
                  .merged = 1,
                  .heads = 1,
                  .head_dim = 1,
                  .keys = {keys.data(), 0, 0, 1},
                  .x = x.data(),
                  .out = out.data(),
                  .out_sizes = sizes.data(),
                  .out_log_sizes = log_sizes.data()});
    EXPECT_EQ(out, (std::vector<float>{10, 14, 11.5F, 13, 15})) << "token 2 joins token 1";
  });
}

}  // namespace
}  // namespace vitrail::kernels
