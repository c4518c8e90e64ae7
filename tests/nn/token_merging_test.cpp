// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/token_merging.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace vitrail::nn {
namespace {

Block merging_block() {
  RandomParams params(1);
  return Block({.attention = {.dim = 8, .num_heads = 2}}, ParamSource(params));
}

// A class token and twelve patches: every token represents as many of the twelve as were merged into it.
TEST(TokenMerging, SharesAreOfThePatchesBeforeTheFirstBlock) {
  const Block block = merging_block();
  TokenMerging merging(3, 1);
  EXPECT_FALSE(merging.shares().defined()) << "nothing was merged";
  Tensor x = Tensor::randn({2, 13, 8}, 1);
  for (const int64_t tokens : {10, 7, 4, 3, 2, 2}) {
    x = merging.forward(block, x);
    ASSERT_EQ(x.shape(), (Shape{2, tokens, 8}));
    const Tensor shares = merging.shares();
    ASSERT_EQ(shares.shape(), (Shape{2, tokens}));
    for (int64_t image = 0; image < 2; ++image) {
      double patches = 0;
      for (int64_t i = 1; i < tokens; ++i) patches += shares.data<float>()[image * tokens + i];
      EXPECT_NEAR(patches, 1, 1e-6) << tokens;
      EXPECT_NEAR(shares.data<float>()[image * tokens], 1.0 / 12, 1e-6) << "the class token is merged with none";
    }
  }
}

TEST(TokenMerging, WithFewQueriesMergesNothingAndGivesTheirRows) {
  const Block block = merging_block();
  const Tensor x = Tensor::randn({2, 13, 8}, 1);
  TokenMerging merging(3, 1), none(0, 1);
  EXPECT_TRUE(testing::close(merging.forward(block, x, 1), block.forward(x).narrow(1, 0, 1), 1e-5));
  EXPECT_FALSE(merging.shares().defined());
  EXPECT_TRUE(testing::close(none.forward(block, x), block.forward(x), 1e-5));
}

}  // namespace
}  // namespace vitrail::nn
