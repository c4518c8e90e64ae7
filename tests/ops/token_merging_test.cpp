// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/token_merging.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/kernel_testing.h"
#include "tests/ops/inputs.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"

namespace vitrail::ops {
namespace {

using testing::error_of;

// One head of dimension 2.  Tokens 0, 2, 4 are set A of the paper, each is merged into its most similar token of set B:
// 1, 3, 5.
const Tensor kKeys = Tensor::from<float>({1, 1, 6, 2}, {1, 0,      // 0: parallel to token 3
                                                        0, 1,      // 1
                                                        0, 2,      // 2: parallel to token 1
                                                        3, 0,      // 3
                                                        1, 0.9,    // 4: similar to 3, but less so than 0
                                                        -1, -1});  // 5
const Tensor kRows = Tensor::from<float>({1, 6, 1}, {1, 10, 100, 1000, 7, 8});

TEST(MergeTokens, MergesSimilarTokens) {
  const MergedTokens result = merge_tokens(kRows, kKeys, {}, 2, 0);
  EXPECT_TRUE(testing::close(result.x, Tensor::from<float>({1, 4, 1}, {7, 55, 500.5, 8}), 1e-4));
  EXPECT_TRUE(testing::close(result.sizes, Tensor::from<float>({1, 4}, {1, 2, 2, 1}), 0));
  const float log2 = std::log(2.0f);
  EXPECT_TRUE(testing::close(result.log_sizes, Tensor::from<float>({1, 4}, {0, log2, log2, 0}), 1e-7));
}

TEST(MergeTokens, WeightsTokensBySize) {
  const Tensor sizes = Tensor::from<float>({1, 6}, {3, 1, 1, 1, 1, 1});
  const MergedTokens result = merge_tokens(kRows, kKeys, sizes, 2, 0);
  EXPECT_TRUE(testing::close(result.x, Tensor::from<float>({1, 4, 1}, {7, 55, 250.75, 8}), 1e-4));
  EXPECT_TRUE(testing::close(result.sizes, Tensor::from<float>({1, 4}, {1, 2, 4, 1}), 0));
}

TEST(MergeTokens, KeepsThePrefix) {
  const MergedTokens result = merge_tokens(kRows, kKeys, {}, 2, 2);
  // A = {2, 4}, B = {3, 5}.  Token 4 is similar to 3.  Token 2 has the cosine 0 to 3 and a negative one to 5.
  EXPECT_TRUE(testing::close(result.x, Tensor::from<float>({1, 4, 1}, {1, 10, (100 + 1000 + 7) / 3.0f, 8}), 1e-4));
}

// Merging does not change the sum of tokens, weighted by size.
TEST(MergeTokens, KeepsTheWeightedSumOnEveryInstructionSet) {
  kernels::testing::for_each_isa([](kernels::Isa) {
    for (const int64_t tokens : {2, 3, 17, 50, 197}) {
      const Tensor x = Tensor::randn({3, tokens, 19}, 1), keys = Tensor::randn({3, 2, tokens, 13}, 2);
      const int64_t max = max_mergeable(tokens, 1);
      for (const int64_t merged : {max / 2, max}) {
        const MergedTokens result = merge_tokens(x, keys, {}, merged, 1);
        for (int64_t c = 0; c < 19; ++c) {
          double before = 0, after = 0;
          for (int64_t i = 0; i < tokens; ++i) before += x.data<float>()[i * 19 + c];
          for (int64_t i = 0; i < tokens - merged; ++i) {
            after += static_cast<double>(result.sizes.data<float>()[i]) * result.x.data<float>()[i * 19 + c];
          }
          ASSERT_NEAR(before, after, 1e-4) << tokens << " tokens, " << merged << " merged, column " << c;
        }
      }
    }
  });
}

TEST(MergeTokens, MergesTokensWhoseKeysAreNaN) {
  const Tensor keys = Tensor::full({1, 1, 6, 2}, NAN);
  const MergedTokens result = merge_tokens(kRows, keys, {}, 3, 0);
  EXPECT_EQ(result.x.size(1), 3);
}

TEST(MergeTokens, RejectsBadArguments) {
  EXPECT_THROW(merge_tokens(kRows, kKeys, {}, 4, 0), Error);
  EXPECT_THROW(merge_tokens(kRows, kKeys, {}, 1, 5), Error);
  EXPECT_THROW(merge_tokens(kRows, kKeys, {}, -1, 0), Error);
  EXPECT_THROW(merge_tokens(kRows, Tensor::zeros({1, 1, 5, 2}), {}, 1, 0), Error);
  EXPECT_THROW(merge_tokens(kRows, kKeys, Tensor::zeros({1, 5}), 1, 0), Error);
  Tensor leaf = kRows.clone();
  autograd::set_requires_grad(leaf, true);
  EXPECT_THROW(merge_tokens(leaf, kKeys, {}, 1, 0), Error);
}

// Cosines with a key of zeros are 0: more than those of opposite keys, less than those of parallel ones.
TEST(MergeTokens, AKeyOfZerosIsSimilarToNone) {
  // Sources 0, 2, 4; destinations 1, 3, 5.
  const Tensor keys = Tensor::from<float>({1, 1, 6, 2}, {0, 0, 1, 0, -1, 0, 1, 0, 5, 1, 1, 0});
  const MergedTokens two = merge_tokens(kRows, keys, {}, 2, 0);
  EXPECT_TRUE(testing::close(two.x, Tensor::from<float>({1, 4, 1}, {100, (1 + 10 + 7) / 3.0f, 1000, 8}), 1e-4));
  EXPECT_TRUE(testing::close(two.sizes, Tensor::from<float>({1, 4}, {1, 3, 1, 1}), 0));
}

TEST(MergeTokens, MergingNothingChangesOnlyTheOrder) {
  const MergedTokens same = merge_tokens(kRows, kKeys, {}, 0, 2);
  EXPECT_TRUE(testing::close(same.x, Tensor::from<float>({1, 6, 1}, {1, 10, 100, 7, 1000, 8}), 0));
  EXPECT_TRUE(testing::close(same.log_sizes, Tensor::zeros({1, 6}), 0));
}

TEST(MergeTokens, AtMostHalfOfThePatchesCanBeMerged) {
  EXPECT_EQ(max_mergeable(197, 1), 98);
  EXPECT_EQ(max_mergeable(198, 1), 98);
  EXPECT_EQ(max_mergeable(5, 5), 0);
  EXPECT_EQ(max_mergeable(3, 5), 0);
  EXPECT_EQ(max_mergeable(2, 0), 1);
}

TEST(MergeTokens, KeepsTheDtypeAndNamesWhatDoesNotFit) {
  const Tensor x = Tensor::randn({2, 7, 4}, 1), keys = Tensor::randn({2, 3, 7, 5}, 2);
  EXPECT_EQ(merge_tokens(x.to(DType::bf16), keys, {}, 2, 1).x.dtype(), DType::bf16);
  EXPECT_EQ(merge_tokens(x, keys, {}, 2, 1).sizes.dtype(), DType::f32);
  EXPECT_ERROR(error_of([&] {
                 merge_tokens(x, keys, Tensor::zeros({2, 6}), 2, 1);
               }),
               "merge_tokens", "[2, 7, 4], [2, 3, 7, 5], [2, 6]");
  EXPECT_ERROR(error_of([&] {
                 merge_tokens(x, Tensor::zeros({2, 3, 6, 5}), {}, 2, 1);
               }),
               "merge_tokens", "[2, 7, 4], [2, 3, 6, 5]");
  EXPECT_ERROR(error_of([&] { merge_tokens(x, keys, {}, 4, 1); }), "merge_tokens", "4");
  EXPECT_ERROR(error_of([&] { merge_tokens(x, leaf_of(keys), {}, 1, 1); }), "merge_tokens", "inputs that do");
}

}  // namespace
}  // namespace vitrail::ops
