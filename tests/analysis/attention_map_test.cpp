// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/attention_map.h"

#include "tests/support/golden.h"

namespace vitrail::analysis {
namespace {

// Four tokens: a prefix of one, and a grid of 1 × 3 patches.
TEST(PatchAttention, IsTheRowOfTheQueryOrTheMeanOfAllRows) {
  const Tensor weights = Tensor::from<float>({4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  const auto row = [](float a, float b, float c) { return Tensor::from<float>({1, 3}, {a, b, c}); };
  EXPECT_TRUE(testing::close(patch_attention(weights, 0, 1, {1, 3}), row(2, 3, 4), 0));
  EXPECT_TRUE(testing::close(patch_attention(weights, 2, 1, {1, 3}), row(10, 11, 12), 0));
  EXPECT_TRUE(testing::close(patch_attention(weights, std::nullopt, 1, {1, 3}), row(8, 9, 10), 0));
}

}  // namespace
}  // namespace vitrail::analysis
