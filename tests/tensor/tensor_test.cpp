// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/support/golden.h"
#include "tests/support/tensors.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail {
namespace {

using testing::counting;

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

TEST(Tensor, NaNConvertsToZeroInEveryIntegerType) {
  const Tensor nan = Tensor::full({3}, std::numeric_limits<double>::quiet_NaN(), DType::f64);
  for (const DType from : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (const DType to : {DType::i64, DType::i32, DType::i8, DType::u8})
      EXPECT_TRUE(testing::close(nan.to(from).to(to), Tensor::zeros({3}), 0)) << name_of(from) << " " << name_of(to);
    EXPECT_EQ(nan.to(from).select(0, 0).item<int64_t>(), 0) << name_of(from);
    EXPECT_TRUE(std::isnan(nan.to(from).select(0, 0).item<double>())) << name_of(from);
  }
}

// 2^31 and 2^63 are the first values that do not fit; the ones before them are exact in double and in float.
TEST(Tensor, TheLargestAndSmallestIntegersAreExact) {
  const Tensor f64 =
      Tensor::from<double>({6}, {2147483647, 2147483648.0, -2147483648.0, -2147483649.0, 0x1p63, -0x1p63});
  const Tensor i32 = f64.to(DType::i32), i64 = f64.to(DType::i64);
  const std::vector<int32_t> want_i32{INT32_MAX, INT32_MAX, INT32_MIN, INT32_MIN, INT32_MAX, INT32_MIN};
  EXPECT_EQ(std::vector<int32_t>(i32.data<int32_t>(), i32.data<int32_t>() + 6), want_i32);
  const std::vector<int64_t> want_i64{2147483647, 2147483648, -2147483648, -2147483649, INT64_MAX, INT64_MIN};
  EXPECT_EQ(std::vector<int64_t>(i64.data<int64_t>(), i64.data<int64_t>() + 6), want_i64);
  const Tensor f32 = Tensor::from<float>({3}, {0x1.fffffep30f, 0x1p31f, -0x1p31f}).to(DType::i32);
  EXPECT_EQ(f32.data<int32_t>()[0], 2147483520);
  EXPECT_EQ(f32.data<int32_t>()[1], INT32_MAX);
  EXPECT_EQ(f32.data<int32_t>()[2], INT32_MIN);
}

TEST(Tensor, ConversionsToBoolCompareWithZero) {
  const Tensor x = Tensor::from<float>({4}, {0, -0.0f, 0.25f, -3}).to(DType::boolean);
  EXPECT_EQ(std::vector<bool>(x.data<bool>(), x.data<bool>() + 4), (std::vector<bool>{false, false, true, true}));
  EXPECT_TRUE(testing::close(x.to(DType::i32), Tensor::from<int32_t>({4}, {0, 0, 1, 1}), 0));
}

// Every pair of a target and a source layout against the definition: element i of one is element i of the other.
TEST(Tensor, CopiesBetweenAnyLayoutsAndDtypes) {
  struct Layout {
    const char* name;
    Tensor (*of)(DType dtype);  // [3, 4, 5]
  };
  const Layout layouts[] = {
      {"contiguous",
       [](DType dtype) {
         return Tensor::zeros({3, 4, 5}, dtype);
       }},
      {"rows",
       [](DType dtype) {
         return Tensor::zeros({3, 6, 9}, dtype).narrow(1, 1, 4).narrow(2, 2, 5);
       }},
      {"columns",
       [](DType dtype) {
         return Tensor::zeros({3, 5, 4}, dtype).transpose(1, 2);
       }},
      {"samples last",
       [](DType dtype) {
         return Tensor::zeros({4, 5, 3}, dtype).permute({2, 0, 1});
       }},
      {"strided",
       [](DType dtype) {
         return Tensor::zeros({3, 4, 5, 2}, dtype).select(3, 1);
       }},
      {"reversed",
       [](DType dtype) {
         return Tensor::zeros({5, 4, 3}, dtype).permute({2, 1, 0});
       }},
  };
  const Tensor values = counting({3, 4, 5});
  for (const DType from : {DType::f32, DType::i32, DType::u8, DType::f16}) {
    for (const DType to : {DType::f32, DType::f64, DType::i64, DType::bf16}) {
      for (const Layout& source_layout : layouts) {
        const Tensor source = source_layout.of(from);
        source.copy_(values);
        ASSERT_TRUE(testing::close(source, values, 0)) << source_layout.name;
        for (const Layout& target_layout : layouts) {
          const Tensor target = target_layout.of(to);
          target.copy_(source);
          ASSERT_TRUE(testing::close(target, values, 0))
              << source_layout.name << " to " << target_layout.name << ", " << name_of(from) << " to " << name_of(to);
        }
      }
    }
  }
}

TEST(Tensor, CopiesBroadcastTheirSource) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor target = Tensor::zeros({2, 3, 4}, dtype), row = counting({4}), column = counting({3, 1});
    target.copy_(row);
    EXPECT_TRUE(testing::close(target.select(0, 1).select(0, 2), row, 0));
    target.copy_(column);
    EXPECT_TRUE(testing::close(target.select(0, 1).select(1, 3), column.select(1, 0), 0));
    target.copy_(Tensor::full({}, 7));
    EXPECT_TRUE(testing::close(target, Tensor::full({2, 3, 4}, 7), 0));
    EXPECT_THROW(target.copy_(counting({3})), Error);
    EXPECT_THROW(target.copy_(Tensor::zeros({1, 2, 3, 4})), Error);
  }
}

TEST(Tensor, CopiesWriteOnlyTheElementsOfTheView) {
  const Tensor memory = Tensor::full({5, 6}, -1), part = memory.narrow(0, 1, 3).narrow(1, 2, 2);
  part.copy_(counting({3, 2}));
  for (int64_t i = 0; i < 30; ++i) {
    const int64_t row = i / 6 - 1, column = i % 6 - 2;
    const bool inside = row >= 0 && row < 3 && column >= 0 && column < 2;
    EXPECT_EQ(memory.data<float>()[i], inside ? static_cast<float>(2 * row + column) : -1) << i;
  }
}

TEST(Tensor, LargeConversionsAreCompleteWithAnyThreads) {
  for (const int threads : {1, 3}) {
    const ThreadCount count(threads);
    for (const int64_t n : {65535, 65536, 200'003}) {
      const Tensor x = counting({n}), wide = x.to(DType::f64);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(wide.data<double>()[i], static_cast<double>(i));
    }
    const Tensor square = counting({400, 300}), copy = square.transpose(0, 1).contiguous();
    for (int64_t i = 0; i < square.numel(); ++i)
      ASSERT_EQ(copy.data<float>()[i % 300 * 400 + i / 300], square.data<float>()[i]) << i;
  }
}

TEST(Tensor, AnItemIsTheOnlyElement) {
  EXPECT_EQ(Tensor::full({}, 2.75).item<double>(), 2.75);
  EXPECT_EQ(Tensor::full({1, 1}, 2.75).item<int32_t>(), 2);
  EXPECT_EQ(counting({2, 3}).select(0, 1).select(0, 2).item<float>(), 5);
  EXPECT_THROW(counting({2}).item<float>(), Error);
  EXPECT_THROW(Tensor::zeros({0}).item<float>(), Error);
}

TEST(Tensor, FromTakesAsManyValuesAsTheShapeHas) {
  EXPECT_THROW(Tensor::from<float>({2, 2}, {1, 2, 3}), Error);
  EXPECT_THROW(Tensor::from<float>({2, 2}, {1, 2, 3, 4, 5}), Error);
  EXPECT_EQ(Tensor::from<float>({2, 0}, {}).numel(), 0);
  const Tensor flags = Tensor::from<bool>({3}, {true, false, true});
  EXPECT_EQ(flags.dtype(), DType::boolean);
  EXPECT_TRUE(testing::close(flags.to(DType::i32), Tensor::from<int32_t>({3}, {1, 0, 1}), 0));
}

TEST(Tensor, DataOfAnotherTypeOrOfNoTensorIsAnError) {
  EXPECT_THROW(counting({2}).data<double>(), Error);
  EXPECT_THROW(Tensor().raw(), Error);
  EXPECT_FALSE(Tensor().defined());
  EXPECT_EQ(Tensor::zeros({0}).data<float>(), nullptr);
  EXPECT_EQ(counting({5}).narrow(0, 2, 1).data<float>()[0], 2);
}

TEST(Tensor, ConversionsToItsOwnTypeShareTheMemory) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(x.to(DType::f32).storage(), x.storage());
  EXPECT_EQ(x.to(Device::cpu).storage(), x.storage());
  EXPECT_EQ(x.contiguous().storage(), x.storage());
  EXPECT_EQ(x.detach().storage(), x.storage());
  EXPECT_NE(x.clone().storage(), x.storage());
  EXPECT_TRUE(x.transpose(0, 1).clone().is_contiguous());
  const Tensor meta = x.to(Device::meta);
  EXPECT_TRUE(meta.is_meta());
  EXPECT_EQ(meta.shape(), x.shape());
  EXPECT_TRUE(meta.clone().is_meta());
  EXPECT_EQ(meta.to(DType::f64).dtype(), DType::f64);
  EXPECT_THROW(meta.to(Device::cpu), Error);
}

TEST(Tensor, IsContiguousIfEveryElementFollowsTheOneBefore) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_TRUE(x.narrow(0, 1, 1).is_contiguous());
  EXPECT_FALSE(x.narrow(1, 0, 2).is_contiguous());
  EXPECT_TRUE(x.select(0, 0).narrow(0, 1, 2).is_contiguous());
  EXPECT_FALSE(x.transpose(0, 1).is_contiguous());
  EXPECT_TRUE(x.narrow(0, 0, 1).transpose(0, 1).is_contiguous()) << "an extent of 1 may have any stride";
  EXPECT_FALSE(counting({3, 1}).expand({3, 2}).is_contiguous());
  EXPECT_TRUE(Tensor::full({}, 1).is_contiguous());
}

TEST(Tensor, SizesCountFromBothEnds) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(x.size(0), 2);
  EXPECT_EQ(x.size(-1), 4);
  EXPECT_EQ(x.size(-3), 2);
  EXPECT_THROW(x.size(3), Error);
  EXPECT_THROW(x.size(-4), Error);
}

TEST(Tensor, RandomValuesAreThoseOfTheSeed) {
  EXPECT_TRUE(testing::close(Tensor::randn({100}, 5), Tensor::randn({100}, 5, DType::f64).to(DType::f32), 0));
  EXPECT_TRUE(testing::close(Tensor::randn({10, 10}, 5).view({100}), Tensor::randn({100}, 5), 0));
  EXPECT_FALSE(testing::close(Tensor::randn({100}, 5), Tensor::randn({100}, 6), 0.1));
}

}  // namespace
}  // namespace vitrail
