// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/unfold.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/kernel_testing.h"

namespace vitrail::kernels {
namespace {

float value_at(const std::vector<float>& maps, const Neighbourhoods& of, int64_t map, int64_t y, int64_t x, int64_t c) {
  if (y < 0 || y >= of.height || x < 0 || x >= of.width) return 0;
  return maps[static_cast<size_t>(((map * of.height + y) * of.width + x) * of.channels + c)];
}

TEST(UnfoldTaps, WritesTheNeighboursOfEachCellAndZerosOutside) {
  constexpr int64_t kMaps = 2;
  for (const Neighbourhoods& of : {Neighbourhoods{1, 1, 3, 1}, Neighbourhoods{4, 5, 2, 1}, Neighbourhoods{5, 4, 3, 2},
                                   Neighbourhoods{3, 2, 1, 3}}) {
    std::vector<float> maps(static_cast<size_t>(kMaps * of.height * of.width * of.channels));
    for (size_t i = 0; i < maps.size(); ++i) maps[i] = static_cast<float>(i + 1);
    std::vector<float> want;
    for (int64_t map = 0; map < kMaps; ++map) {
      for (int64_t row = 0; row < of.rows(); ++row) {
        for (int64_t column = 0; column < of.columns(); ++column) {
          for (int64_t tap = 0; tap < Neighbourhoods::kTaps; ++tap) {
            for (int64_t c = 0; c < of.channels; ++c) {
              want.push_back(
                  value_at(maps, of, map, row * of.stride + tap / 3 - 1, column * of.stride + tap % 3 - 1, c));
            }
          }
        }
      }
    }
    const int64_t all = kMaps * of.rows() * of.columns();
    for (const int64_t first : {int64_t{0}, all / 2, all - 1}) {
      testing::Buffer y((all - first) * of.values(), 1);
      unfold_taps(maps.data(), of, first, all - first, y.data());
      y.check();
      EXPECT_EQ(y.values(), std::vector<float>(want.begin() + first * of.values(), want.end())) << first;
    }
  }
}

}  // namespace
}  // namespace vitrail::kernels
