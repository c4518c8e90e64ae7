// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/quantized_rows_internal.h"

#include <gtest/gtest.h>

#include <set>

namespace vitrail::kernels {
namespace {

// Against a list of the rows.
TEST(TwoTermRows, AreEveryRowOfTheirStrideFromTheFirst) {
  for (const int64_t stride : {0, 1, 2, 5, 100}) {
    for (int64_t first = 0; first < 7; ++first) {
      const TwoTermRows rows{first, stride};
      std::set<int64_t> list;
      for (int64_t row = first; stride > 0 && row < 40; row += stride) list.insert(row);
      for (int64_t row = 0; row < 40; ++row) {
        ASSERT_EQ(contains(rows, row), list.contains(row)) << first << " + n · " << stride << ", row " << row;
        const int64_t before = std::distance(list.begin(), list.lower_bound(row));
        ASSERT_EQ(count_before(rows, row), before) << first << " + n · " << stride << ", row " << row;
        for (int64_t later = row; later < 40; ++later)
          ASSERT_EQ(contains(starting_at(rows, row), later - row), list.contains(later)) << row << " " << later;
      }
    }
  }
}

// Every row and every low term has a slot of its own, and none is left out.
TEST(QuantizedRows, HaveOneSlotForEachTerm) {
  for (const int64_t count : {1, 2, 11, 12, 13, 96, 197, 400}) {
    for (const int64_t stride : {0, 1, 3, 50, 197}) {
      const RowBlocking blocking{};
      const QuantizedRows rows(count, {0, stride}, blocking);
      std::set<int64_t> slots;
      for (int64_t row = 0; row < count; ++row) {
        EXPECT_TRUE(slots.insert(rows.slot(row)).second) << row;
        EXPECT_EQ(rows.has_low_term(row), stride > 0 && row % stride == 0);
        if (rows.has_low_term(row)) {
          EXPECT_TRUE(slots.insert(rows.low_term_slot(row)).second) << row;
        }
      }
      ASSERT_EQ(static_cast<int64_t>(slots.size()), rows.num_slots()) << count << ", " << stride;
      EXPECT_EQ(*slots.begin(), 0);
      EXPECT_EQ(*slots.rbegin(), rows.num_slots() - 1);
      const int64_t block = rows.block_rows();
      for (int64_t row = 0; row < count; row += block) {
        const int64_t in_block = std::min(block, count - row);
        EXPECT_LE(in_block + count_before(rows.two_term_from(row), in_block), blocking.max) << "rows and low terms";
        for (int64_t r = 1; r < in_block; ++r) EXPECT_EQ(rows.slot(row + r), rows.slot(row) + r) << "adjacent";
      }
    }
  }
}

}  // namespace
}  // namespace vitrail::kernels
