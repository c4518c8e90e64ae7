// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/patchify.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/kernel_testing.h"

namespace vitrail::kernels {
namespace {

TEST(Patchify, WritesThePatchesInRowsAndTheirElementsByChannel) {
  // 2 channels of 3 × 5 pixels, in patches of 1 row and 2 columns; the fifth column is dropped.
  std::vector<float> image(2 * 3 * 5);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i);
  std::vector<float> rows(3 * 2 * 4, -1.0f);
  patchify(image.data(), 1, 2, 3, 5, 1, 2, rows.data());
  EXPECT_EQ(rows, (std::vector<float>{0, 1, 15, 16, 2,  3,  17, 18, 5,  6,  20, 21,  //
                                      7, 8, 22, 23, 10, 11, 25, 26, 12, 13, 27, 28}));
}

TEST(Patchify, TakesTheImagesOfABatchOneAfterTheOtherAndDropsRemainders) {
  struct Case {
    int64_t batch, channels, height, width, patch_height, patch_width;
  };
  for (const auto& [batch, channels, height, width, ph, pw] :
       {Case{1, 1, 1, 1, 1, 1}, Case{2, 3, 8, 6, 4, 3}, Case{3, 2, 7, 10, 2, 4}, Case{2, 1, 9, 5, 3, 5},
        Case{1, 4, 5, 9, 5, 2}, Case{2, 2, 3, 4, 4, 2}}) {
    const int64_t grid_height = height / ph, grid_width = width / pw;
    std::vector<float> image(static_cast<size_t>(batch * channels * height * width));
    for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i);
    std::vector<float> want;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t row = 0; row < grid_height; ++row) {
        for (int64_t column = 0; column < grid_width; ++column) {
          for (int64_t c = 0; c < channels; ++c) {
            for (int64_t y = row * ph; y < (row + 1) * ph; ++y) {
              for (int64_t x = column * pw; x < (column + 1) * pw; ++x) {
                want.push_back(image[static_cast<size_t>(((b * channels + c) * height + y) * width + x)]);
              }
            }
          }
        }
      }
    }
    testing::Buffer rows(static_cast<int64_t>(want.size()), 1);
    patchify(image.data(), batch, channels, height, width, ph, pw, rows.data());
    rows.check();
    EXPECT_EQ(rows.values(), want) << batch << " images of " << height << "×" << width;
  }
}

}  // namespace
}  // namespace vitrail::kernels
