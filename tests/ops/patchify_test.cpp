// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/patchify.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/base/error.h"

namespace vitrail::ops {
namespace {

// Compares patches with the definition in the header, element by element.  The values are exact in every dtype.
void expect_patches(DType dtype, const Shape& shape, int64_t rows, int64_t columns) {
  const Tensor image = Tensor::empty(shape, DType::i64);
  for (int64_t i = 0; i < image.numel(); ++i) image.data<int64_t>()[i] = dtype == DType::boolean ? i % 3 == 0 : i % 120;
  const Tensor patches = patchify(image.to(dtype), rows, columns);
  const int64_t down = shape[2] / rows, across = shape[3] / columns;
  ASSERT_EQ(patches.shape(), (Shape{shape[0], down * across, shape[1] * rows * columns}));
  ASSERT_EQ(patches.dtype(), dtype);
  const Tensor got = patches.to(DType::i64).contiguous();
  for (int64_t i = 0; i < got.numel(); ++i) {
    const int64_t x = i % columns, y = i / columns % rows, c = i / columns / rows % shape[1];
    const int64_t patch = i / columns / rows / shape[1];
    const int64_t column = patch % across, row = patch / across % down, b = patch / across / down;
    const int64_t at = ((b * shape[1] + c) * shape[2] + row * rows + y) * shape[3] + column * columns + x;
    ASSERT_EQ(got.data<int64_t>()[i], image.data<int64_t>()[at]) << name_of(dtype) << " element " << i;
  }
}

TEST(Patchify, AcceptsEveryDtype) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::i8,
                            DType::u8, DType::boolean}) {
    expect_patches(dtype, {2, 3, 8, 12}, 4, 4);
    expect_patches(dtype, {1, 2, 6, 10}, 3, 5);
    expect_patches(dtype, {2, 1, 7, 9}, 3, 4);  // with a remainder
    expect_patches(dtype, {1, 3, 4, 4}, 1, 1);
    expect_patches(dtype, {1, 3, 4, 4}, 4, 4);
  }
}

TEST(Patchify, AcceptsAnyLayout) {
  for (const DType dtype : {DType::f32, DType::u8}) {
    const Tensor channels_last = Tensor::randn({2, 8, 8, 3}, 1).to(dtype);
    const Tensor image = channels_last.permute({0, 3, 1, 2});
    EXPECT_TRUE(testing::close(patchify(image, 4, 4), patchify(image.contiguous(), 4, 4), 0));
  }
}

TEST(Patchify, RejectsImagesSmallerThanAPatchAndEmptyPatches) {
  EXPECT_THROW(patchify(Tensor::zeros({3, 8, 8}), 4, 4), Error);
  EXPECT_THROW(patchify(Tensor::zeros({1, 3, 3, 8}), 4, 4), Error);
  EXPECT_THROW(patchify(Tensor::zeros({1, 3, 8, 8}), 0, 4), Error);
  EXPECT_THROW(patchify(Tensor::zeros({1, 3, 8, 8}), 4, -4), Error);
  EXPECT_EQ(patchify(Tensor::zeros({0, 3, 8, 8}), 4, 4).shape(), (Shape{0, 4, 48}));
}

}  // namespace
}  // namespace vitrail::ops
