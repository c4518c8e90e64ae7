// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/layout.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace vitrail::ops {
namespace {

struct Layout {
  const char* name;
  Tensor view;
  bool last_axis, rows;  // whether it is one, or is copied
};

std::vector<Layout> layouts() {
  const Tensor x = Tensor::randn({2, 3, 4}, 1);
  return {{"contiguous", x, true, true},
          {"columns", x.narrow(2, 1, 2), true, true},
          {"one column", x.narrow(2, 1, 1), true, true},
          {"first rows", x.narrow(1, 0, 2), true, false},
          {"one row of each", x.narrow(1, 2, 1), true, true},
          {"a sample", x.narrow(0, 1, 1), true, true},
          {"samples exchanged with rows", x.transpose(0, 1), true, false},
          {"rows exchanged with columns", x.transpose(1, 2), false, false},
          {"a selected row", x.select(1, 1), true, true},
          {"a selected column", x.select(2, 1), false, false},
          {"repeated rows", x.narrow(1, 0, 1).expand({2, 3, 4}), true, false},
          {"a vector", x.select(0, 0).select(0, 1), true, true},
          {"a scalar", Tensor::full({}, 3), true, true}};
}

TEST(Layout, OnlyOtherLayoutsAreCopied) {
  for (const Layout& layout : layouts()) {
    const Tensor axis = with_contiguous_last_axis(layout.view), rows = with_evenly_spaced_rows(layout.view);
    EXPECT_EQ(axis.storage() == layout.view.storage(), layout.last_axis) << layout.name;
    EXPECT_EQ(rows.storage() == layout.view.storage(), layout.rows) << layout.name;
    EXPECT_TRUE(testing::close(axis, layout.view, 0)) << layout.name;
    EXPECT_TRUE(testing::close(rows, layout.view, 0)) << layout.name;
  }
  EXPECT_FALSE(with_contiguous_last_axis({}).defined());
}

}  // namespace
}  // namespace vitrail::ops
