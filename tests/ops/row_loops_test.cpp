// SPDX-License-Identifier: Apache-2.0
// The loops over rows of strided views, against the tensors' own elements.
#include "vitrail/ops/row_loops_internal.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/tensors.h"

namespace vitrail::ops {
namespace {

TEST(RowLoops, VisitEachRowOnceWithItsOffsets) {
  const ThreadCount one(1);
  std::vector<std::array<int64_t, 2>> seen;
  for_rows<2>({2, 3, 4}, {Shape{100, 10, 1}, Shape{0, 5, 1}}, [&](const auto& at) { seen.push_back(at); });
  EXPECT_EQ(seen, (std::vector<std::array<int64_t, 2>>{{0, 0}, {10, 5}, {20, 10}, {100, 0}, {110, 5}, {120, 10}}));
  seen.clear();
  for_rows<2>({3, 0}, {Shape{1, 1}, Shape{1, 1}}, [&](const auto& at) { seen.push_back(at); });
  EXPECT_TRUE(seen.empty()) << "rows without elements";
  for_rows<2>({7}, {Shape{1}, Shape{1}}, [&](const auto& at) { seen.push_back(at); });
  EXPECT_EQ(seen.size(), 1u);
}

TEST(RowLoops, CopyTakesAnyStridesOfItsSource) {
  const Tensor x = testing::counting({4, 5, 6});
  for (const Tensor& view : {x, x.transpose(0, 1), x.permute({2, 0, 1}), x.narrow(2, 1, 3), x.narrow(1, 2, 2),
                             x.select(0, 3), x.narrow(2, 4, 1).expand({4, 5, 3})}) {
    const Tensor memory = Tensor::full({view.numel() + 40}, -1);
    Tensor to = Tensor::full(view.shape(), -1);
    copy_rows(view.data<float>(), view, to.data<float>(), to);
    EXPECT_TRUE(testing::close(to, view.contiguous(), 0)) << view.shape();
  }
  const Tensor wide = Tensor::full({4, 9, 6}, -1);  // into rows 2 to 6 of each sample
  copy_rows(x.data<float>(), x, wide.narrow(1, 2, 5).data<float>(), wide.narrow(1, 2, 5));
  EXPECT_TRUE(testing::close(wide.narrow(1, 2, 5).contiguous(), x, 0));
  EXPECT_TRUE(testing::close(wide.narrow(1, 0, 2).contiguous(), Tensor::full({4, 2, 6}, -1), 0));
  EXPECT_TRUE(testing::close(wide.narrow(1, 7, 2).contiguous(), Tensor::full({4, 2, 6}, -1), 0));
}

TEST(RowLoops, CombineBroadcastsEitherOperand) {
  const Tensor x = testing::counting({2, 3, 4}), row = testing::counting({4}), column = testing::counting({3, 1}),
               sample = testing::counting({2, 1, 1});
  const auto difference = [](float a, float b) { return a - b; };
  for (const Tensor& other : {x, row, column, sample}) {
    for (const bool swapped : {false, true}) {
      const Tensor got = Tensor::empty({2, 3, 4}), wide = other.expand({2, 3, 4}).contiguous();
      if (swapped) {
        combine_rows(other.data<float>(), other, x.data<float>(), x, got.data<float>(), got, difference);
      } else {
        combine_rows(x.data<float>(), x, other.data<float>(), other, got.data<float>(), got, difference);
      }
      for (int64_t i = 0; i < 24; ++i) {
        const float want = x.data<float>()[i] - wide.data<float>()[i];
        EXPECT_EQ(got.data<float>()[i], swapped ? -want : want) << other.shape() << " " << i;
      }
    }
  }
  const Tensor turned = testing::counting({2, 4, 3}).transpose(1, 2), got = Tensor::empty({2, 3, 4});
  combine_rows(turned.data<float>(), turned, row.data<float>(), row, got.data<float>(), got, difference);
  for (int64_t i = 0; i < 24; ++i) {
    EXPECT_EQ(got.data<float>()[i], turned.contiguous().data<float>()[i] - static_cast<float>(i % 4)) << i;
  }
}

}  // namespace
}  // namespace vitrail::ops
