// SPDX-License-Identifier: Apache-2.0
#include "vitrail/anomaly/foreground.h"

#include <gtest/gtest.h>

#include <string>

namespace vitrail::anomaly {
namespace {

// Features along one axis: `value` in the patches of "#", else 0.  The mean is no part of the component.
Tensor grid_of(const std::vector<std::string>& rows, float value) {
  const Tensor grid = Tensor::zeros({std::ssize(rows), std::ssize(rows[0]), 3});
  for (int64_t y = 0; y < grid.size(0); ++y) {
    for (int64_t x = 0; x < grid.size(1); ++x)
      grid.data<float>()[(y * grid.size(1) + x) * 3 + 1] =
          rows[static_cast<size_t>(y)][static_cast<size_t>(x)] == '#' ? value : 0.F;
  }
  return grid;
}

std::vector<std::string> foreground(const std::vector<std::string>& rows, float value) {
  const std::vector<uint8_t> mask = foreground_of(grid_of(rows, value));
  std::vector<std::string> result;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (i % rows[0].size() == 0) result.emplace_back();
    result.back() += mask[i] ? '#' : '.';
  }
  return result;
}

using Rows = std::vector<std::string>;

const Rows kObject{"..........", "..........", "..........", "...####...", "...####...",
                   "...####...", "...####...", "..........", "..........", ".........."};

TEST(Foreground, IsTheObjectDilatedAndClosed) {
  const Rows dilated{"..........", "..........", "..######..", "..######..", "..######..",
                     "..######..", "..######..", "..######..", "..........", ".........."};
  EXPECT_EQ(foreground(kObject, 40), dilated);
  EXPECT_EQ(foreground(kObject, -40), dilated);  // the component has the sign of the largest element: the other side
}

TEST(Foreground, ClosesGapsThatDilationLeaves) {
  Rows gap = kObject;
  gap[0][0] = gap[0][4] = '#';  // columns 0, 1 and 3 to 5 after dilation: the closing fills column 2
  const Rows mask = foreground(gap, 40);
  EXPECT_EQ(mask[0], "######....");
  EXPECT_EQ(mask[1], "######....");
}

// At most 35 % of the inner 6 × 6 patches: 12 of 36, but 13 are enough.
TEST(Foreground, IsTheOtherSideIfTheCenterIsNotCovered) {
  Rows few{"..........", "..........", "..####....", "..####....", "..####....",
           "..........", "..........", "..........", "..........", ".........."};
  const Rows other = foreground(few, 40);
  EXPECT_TRUE(other.empty());  // what is no object is not below −10 with a mean of 40 · 12 / 100
  few[5][2] = '#';
  EXPECT_EQ(foreground(few, 40)[3], "#######...");  // the closing fills the column at the edge
  Rows border(20, std::string(20, '#'));
  for (size_t y = 4; y < 16; ++y) border[y].replace(4, 12, 12, '.');  // the inner 12 × 12 patches
  const Rows center = foreground(border, 40);
  EXPECT_EQ(center[2], std::string(20, '.'));
  for (const size_t y : {3, 10, 16}) EXPECT_EQ(center[y], "...##############...");
  EXPECT_EQ(center[17], std::string(20, '.'));
}

TEST(Foreground, IsNothingWithoutAComponentAboveTen) {
  EXPECT_TRUE(foreground(kObject, 10).empty());  // above the mean by less
  EXPECT_TRUE(foreground_of(Tensor::zeros({1, 1, 4})).empty());
  EXPECT_TRUE(foreground_of(Tensor::zeros({4, 4, 4})).empty());
}

TEST(Foreground, UsesAllLayers) {
  const Tensor zero = Tensor::zeros({10, 10, 3}), grid = grid_of(kObject, 40);
  const Tensor layers = Tensor::empty({2, 10, 10, 3});
  layers.select(0, 0).copy_(zero);
  layers.select(0, 1).copy_(grid);
  EXPECT_EQ(foreground_of(layers), foreground_of(grid));
}

}  // namespace
}  // namespace vitrail::anomaly
