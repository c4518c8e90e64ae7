// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "vitrail/base/error.h"

namespace vitrail {
namespace {

Tensor counting(const Shape& shape) {
  std::vector<float> values(shape.numel());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::from(shape, values);
}

// C++ leaves conversions beyond the range undefined.
TEST(Tensor, ConversionsToIntegersSaturate) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor numbers = Tensor::from<double>({8}, {-1.9, -0.5, 2.7, 127.9, 255.5, 1e30, -inf, nan});
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    const Tensor from = numbers.to(dtype), bytes = from.to(DType::u8), signed_bytes = from.to(DType::i8);
    const uint8_t rounded = dtype == DType::bf16 ? 128 : 127;  // 127.9 in 8 bits is 128
    const std::vector<uint8_t> want{0, 0, 2, rounded, 255, 255, 0, 0};
    EXPECT_EQ(std::vector<uint8_t>(bytes.data<uint8_t>(), bytes.data<uint8_t>() + 8), want) << name_of(dtype);
    const std::vector<int8_t> signed_want{-1, 0, 2, 127, 127, 127, -128, 0};
    EXPECT_EQ(std::vector<int8_t>(signed_bytes.data<int8_t>(), signed_bytes.data<int8_t>() + 8), signed_want)
        << name_of(dtype);
    EXPECT_EQ(from.to(DType::i64).data<int64_t>()[6], std::numeric_limits<int64_t>::min()) << name_of(dtype);
  }
}

TEST(Tensor, PermuteThenReshapeCopiesInTheNewOrder) {
  const Tensor t = counting({2, 3}).permute({1, 0});
  EXPECT_EQ(t.shape(), (Shape{3, 2}));
  EXPECT_FALSE(t.is_contiguous());
  const Tensor flat = t.reshape({6});
  const std::vector<float> expected{0, 3, 1, 4, 2, 5};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(flat.data<float>()[i], expected[i]);
}

// Shapes that fill tiles, exceed them and stay below them; every axis order of three.
TEST(Tensor, PermutedCopiesHaveEveryElementInItsPlace) {
  for (const Shape& shape : {Shape{3, 16, 32}, {2, 37, 19}, {17, 1, 5}, {1, 40, 3}, {4, 0, 3}, {0, 2, 5}}) {
    const Tensor t = counting(shape);
    for (const std::array<int, 3>& order : {std::array{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
      const Tensor permuted = t.permute({order[0], order[1], order[2]}), copy = permuted.contiguous();
      const Shape steps = permuted.strides();
      int64_t wrong = 0, at = 0;
      for (int64_t i = 0; i < copy.size(0); ++i)
        for (int64_t j = 0; j < copy.size(1); ++j)
          for (int64_t k = 0; k < copy.size(2); ++k)
            wrong += copy.data<float>()[at++] != t.data<float>()[i * steps[0] + j * steps[1] + k * steps[2]];
      EXPECT_EQ(wrong, 0) << shape << " " << order[0] << order[1] << order[2];
    }
  }
}

TEST(Tensor, ViewOfATransposedTensorIsAnError) { EXPECT_THROW(counting({2, 3}).transpose(0, 1).view({6}), Error); }

TEST(Tensor, QkvSplitIsAView) {
  const Tensor qkv = counting({2, 5, 3 * 4 * 6});
  const Tensor heads = qkv.view({2, 5, 3, 4, 6}).permute({2, 0, 3, 1, 4});
  EXPECT_EQ(heads.select(0, 1).shape(), (Shape{2, 4, 5, 6}));
  EXPECT_EQ(heads.storage(), qkv.storage());
  EXPECT_EQ(*heads.select(0, 1).select(0, 1).select(0, 2).select(0, 3).data<float>(), 1 * 360 + 3 * 72 + 24 + 12);
}

TEST(Tensor, ViewsOfNonContiguousTensorsSplitAndMergeWhereStridesAllow) {
  const Tensor t = counting({4, 6, 5}).narrow(1, 1, 2);
  EXPECT_EQ(t.view({2, 2, 2, 5}).storage(), t.storage());
  EXPECT_EQ(t.view({4, 10}).shape(), (Shape{4, 10}));  // the last two axes are contiguous
  EXPECT_THROW(t.view({40}), Error);
}

TEST(Tensor, MetaHasShapeButNoData) {
  const Tensor t = Tensor::empty({3, 4}, DType::f32, Device::meta);
  EXPECT_TRUE(t.is_meta());
  EXPECT_THROW(t.data<float>(), Error);
}

TEST(Tensor, ConversionRoundsToNearestEven) {
  const Tensor t = Tensor::from<float>({4}, {1.0f, 1.00390625f, 65520.0f, 1e-8f});
  EXPECT_EQ(static_cast<float>(t.to(DType::bf16).data<BFloat16>()[1]), 1.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(t.to(DType::f16).data<Float16>()[2])));
  EXPECT_EQ(static_cast<float>(t.to(DType::f16).data<Float16>()[3]), 0.0f);
}

TEST(Tensor, ShapesWhoseProductOverflowsAreRefused) {
  EXPECT_THROW(Tensor::empty({int64_t{1} << 40, int64_t{1} << 40}), Error);
}

}  // namespace
}  // namespace vitrail
