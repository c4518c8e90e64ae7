// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/attention_map.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/golden.h"
#include "tests/support/messages.h"

namespace vitrail::analysis {
namespace {

using Matrix = std::vector<double>;  // [n, n]

constexpr double kEps = 1e-6;  // sums of at most 10 products of values in [0, 1], in fp32

// Attention weights [heads, n, n] without symmetry: each row of each head is different and sums to 1.
Tensor attention_weights(int64_t heads, int64_t n, int seed) {
  const Tensor weights = Tensor::empty({heads, n, n});
  float* data = weights.data<float>();
  for (int64_t row = 0; row < heads * n; ++row) {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += data[row * n + i] = static_cast<float>((row * 7 + i * 5 + seed) % 11 + 1);
    for (int64_t i = 0; i < n; ++i) data[row * n + i] /= sum;
  }
  return weights;
}

// ½A + ½I with A the mean over the heads.
Matrix with_residual(const Tensor& weights) {
  const int64_t heads = weights.size(0), n = weights.size(1);
  Matrix result(static_cast<size_t>(n * n));
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < n * n; ++i) {
      result[static_cast<size_t>(i)] += 0.5 * weights.data<float>()[h * n * n + i] / static_cast<double>(heads);
    }
  }
  for (int64_t i = 0; i < n; ++i) result[static_cast<size_t>(i * n + i)] += 0.5;
  return result;
}

Matrix product(const Matrix& a, const Matrix& b, size_t n) {
  Matrix result(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t k = 0; k < n; ++k) result[i * n + j] += a[i * n + k] * b[k * n + j];
    }
  }
  return result;
}

// Tokens of the last block attend to those of the one before: its matrix is the left factor.
TEST(AttentionRollout, IsTheProductFromTheLastBlockToTheFirst) {
  const size_t n = 5;
  std::vector<Tensor> blocks;
  Matrix want;
  for (int block = 0; block < 3; ++block) {
    blocks.push_back(attention_weights(2, static_cast<int64_t>(n), 3 * block));
    want = block == 0 ? with_residual(blocks[0]) : product(with_residual(blocks.back()), want, n);
  }
  const Tensor rollout = attention_rollout(blocks);
  EXPECT_TRUE(testing::close(rollout, Tensor::from<double>({5, 5}, want), kEps));
  std::swap(blocks[0], blocks[2]);
  EXPECT_FALSE(testing::close(attention_rollout(blocks), rollout, 100 * kEps)) << "the blocks must not commute";
}

TEST(AttentionRollout, WithoutBlocksIsAnError) {
  EXPECT_TRUE(testing::contains(testing::error_of([] { attention_rollout({}); }), "at least one block"));
}

TEST(MeanOverHeads, IsTheMeanOfEachWeight) {
  const Tensor weights = attention_weights(3, 4, 1);
  const Tensor mean = mean_over_heads(weights);
  ASSERT_EQ(mean.shape(), (Shape{4, 4}));
  const float* w = weights.data<float>();
  for (int64_t i = 0; i < 16; ++i) EXPECT_NEAR(mean.data<float>()[i], (w[i] + w[16 + i] + w[32 + i]) / 3, kEps);
}

// Four tokens: a prefix of one, and a grid of 1 × 3 patches.
TEST(PatchAttention, IsTheRowOfTheQueryOrTheMeanOfAllRows) {
  const Tensor weights = Tensor::from<float>({4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  const auto row = [](float a, float b, float c) { return Tensor::from<float>({1, 3}, {a, b, c}); };
  EXPECT_TRUE(testing::close(patch_attention(weights, 0, 1, {1, 3}), row(2, 3, 4), 0));
  EXPECT_TRUE(testing::close(patch_attention(weights, 2, 1, {1, 3}), row(10, 11, 12), 0));
  EXPECT_TRUE(testing::close(patch_attention(weights, std::nullopt, 1, {1, 3}), row(8, 9, 10), 0));
}

// Row i has what token i attends to; column i has what attends to token i.
TEST(PatchAttention, IsTheRowOfTheClassToken) {
  const Tensor weights = attention_weights(1, 8, 2).select(0, 0);  // 2 prefix tokens, 2 × 3 patches
  const Tensor map = patch_attention(weights, 0, 2, {2, 3});
  ASSERT_EQ(map.shape(), (Shape{2, 3}));
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(map.data<float>()[i], weights.data<float>()[2 + i]) << i;
}

TEST(PatchAttention, WithoutAClassTokenIsTheMeanOverQueries) {
  const Tensor weights = attention_weights(1, 7, 2).select(0, 0);  // 1 register, 3 × 2 patches
  const Tensor map = patch_attention(weights, std::nullopt, 1, {3, 2});
  ASSERT_EQ(map.shape(), (Shape{3, 2}));
  for (int64_t i = 0; i < 6; ++i) {
    double mean = 0;
    for (int64_t query = 0; query < 7; ++query) mean += weights.data<float>()[query * 7 + 1 + i] / 7.0;
    EXPECT_NEAR(map.data<float>()[i], mean, kEps) << i;
  }
}

}  // namespace
}  // namespace vitrail::analysis
