// SPDX-License-Identifier: Apache-2.0
// How the GEMMs divide their output, and what they prefetch.
#include "vitrail/kernels/gemm/cache_blocking_internal.h"

#include <gtest/gtest.h>

#include <vector>

namespace vitrail::kernels {
namespace {

TEST(CacheBlocking, BlocksOfRowsAreEvenAndCompleteRegisterTiles) {
  EXPECT_EQ(block_rows(1), 6);
  EXPECT_EQ(block_rows(192), 192);
  EXPECT_EQ(block_rows(197), 102);  // two blocks
  EXPECT_EQ(block_rows(197, kAmxRows.max, kAmxRows.tile), 224);
  EXPECT_EQ(block_rows(257, kAmxRows.max, kAmxRows.tile), 160);
  EXPECT_EQ(block_rows(1576, kAmxRows.max, kAmxRows.tile), 256);
}

// Goes through the parts of two output blocks in the order of the GEMMs.  A part prefetches the one that follows it.
TEST(CacheBlocking, EachPartPrefetchesTheNextOne) {
  constexpr int64_t kWidth = 32, kDepth = 10, kColumns = 96;
  std::vector<int32_t> weight(2 * kColumns * kDepth);
  std::vector<NextPanel> parts, prefetched;
  for (const int32_t* block : {weight.data(), weight.data() + kColumns * kDepth}) {
    const BlockPanels panels{block, kColumns, kDepth, kWidth};
    for (const int64_t first : {0, 5}) {
      for (int64_t column = 0; column < kColumns; column += kWidth) {
        parts.push_back({block + column * kDepth + first * kWidth, 5 * kWidth * 4});
        prefetched.push_back(panels.after(column, first, first + 5));
      }
    }
  }
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    EXPECT_EQ(prefetched[i].data, parts[i + 1].data) << i;
    EXPECT_EQ(prefetched[i].bytes, parts[i + 1].bytes) << i;
  }
}

}  // namespace
}  // namespace vitrail::kernels
