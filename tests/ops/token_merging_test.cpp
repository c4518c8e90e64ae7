// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/token_merging.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/kernel_testing.h"
#include "tests/support/golden.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"

namespace vitrail::ops {
namespace {

// One head of two numbers: tokens 0, 2, 4 look, 1, 3, 5 are looked for.
const Tensor kKeys = Tensor::from<float>({1, 1, 6, 2}, {1, 0,      // 0: as token 3
                                                        0, 1,      // 1
                                                        0, 2,      // 2: as token 1, whatever its length
                                                        3, 0,      // 3
                                                        1, 0.9,    // 4: like no one so much
                                                        -1, -1});  // 5
const Tensor kRows = Tensor::from<float>({1, 6, 1}, {1, 10, 100, 1000, 7, 8});

TEST(MergeTokens, TheMostAlikeBecomeOne) {
  const MergedTokens result = merge_tokens(kRows, kKeys, {}, 2, 0);
  EXPECT_TRUE(testing::close(result.x, Tensor::from<float>({1, 4, 1}, {7, 55, 500.5, 8}), 1e-4));
  EXPECT_TRUE(testing::close(result.sizes, Tensor::from<float>({1, 4}, {1, 2, 2, 1}), 0));
  const float log2 = std::log(2.0f);
  EXPECT_TRUE(testing::close(result.log_sizes, Tensor::from<float>({1, 4}, {0, log2, log2, 0}), 1e-7));
}

TEST(MergeTokens, SizesWeigh) {
  const Tensor sizes = Tensor::from<float>({1, 6}, {3, 1, 1, 1, 1, 1});
  const MergedTokens result = merge_tokens(kRows, kKeys, sizes, 2, 0);
  EXPECT_TRUE(testing::close(result.x, Tensor::from<float>({1, 4, 1}, {7, 55, 250.75, 8}), 1e-4));
  EXPECT_TRUE(testing::close(result.sizes, Tensor::from<float>({1, 4}, {1, 2, 4, 1}), 0));
}

TEST(MergeTokens, ThePrefixStays) {
  const MergedTokens result = merge_tokens(kRows, kKeys, {}, 2, 2);  // tokens 0 and 1 are out of it
  // 2 and 4 look among 3 and 5: 4 is like 3; 2 at right angles to 3 is less unlike it than it is 5.
  EXPECT_TRUE(testing::close(result.x, Tensor::from<float>({1, 4, 1}, {1, 10, (100 + 1000 + 7) / 3.0f, 8}), 1e-4));
}

// All of a random batch: what is merged is lost nowhere, on every instruction set, at awkward sizes.
TEST(MergeTokens, KeepsTheSumOnEveryInstructionSet) {
  kernels::testing::for_each_isa([](kernels::Isa) {
    for (const int64_t tokens : {2, 3, 17, 50, 197}) {
      const Tensor x = Tensor::randn({3, tokens, 19}, 1), keys = Tensor::randn({3, 2, tokens, 13}, 2);
      const int64_t most = max_mergeable(tokens, 1);
      for (const int64_t merged : {most / 2, most}) {
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

TEST(MergeTokens, NothingFiniteMergesAll) {
  const Tensor keys = Tensor::full({1, 1, 6, 2}, NAN);
  const MergedTokens result = merge_tokens(kRows, keys, {}, 3, 0);
  EXPECT_EQ(result.x.size(1), 3);
}

TEST(MergeTokens, BadArgumentsAreErrors) {
  EXPECT_THROW(merge_tokens(kRows, kKeys, {}, 4, 0), Error);
  EXPECT_THROW(merge_tokens(kRows, kKeys, {}, 1, 5), Error);
  EXPECT_THROW(merge_tokens(kRows, kKeys, {}, -1, 0), Error);
  EXPECT_THROW(merge_tokens(kRows, Tensor::zeros({1, 1, 5, 2}), {}, 1, 0), Error);
  EXPECT_THROW(merge_tokens(kRows, kKeys, Tensor::zeros({1, 5}), 1, 0), Error);
  Tensor wanted = kRows.clone();
  autograd::set_requires_grad(wanted, true);
  EXPECT_THROW(merge_tokens(wanted, kKeys, {}, 1, 0), Error);
}

}  // namespace
}  // namespace vitrail::ops
