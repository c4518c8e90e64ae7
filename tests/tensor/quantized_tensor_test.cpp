// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/quantized_tensor.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"

namespace vitrail {
namespace {

QuantizedTensor example() {
  return {Tensor::from<int8_t>({2, 3}, {1, -2, 127, 4, 5, -127}), Tensor::from<float>({2}, {0.5, 2}),
          std::make_shared<const QuantizedTensor>(QuantizedTensor{Tensor::from<int8_t>({2, 3}, {1, 0, 2, 0, -4, 8}),
                                                                  Tensor::from<float>({2}, {0.25, 0.125})})};
}

Tensor example_values() { return Tensor::from<float>({2, 3}, {0.75, -1, 64, 8, 9.5, -253}); }

TEST(QuantizedTensor, IsScaleTimesValuePlusCorrection) {
  const Tensor weight = Tensor::from_quantized(example());
  EXPECT_EQ(weight.dtype(), DType::i8);
  EXPECT_TRUE(testing::close(weight.to(DType::f32), example_values(), 0));
  EXPECT_TRUE(testing::close(weight.clone().to(DType::f32), example_values(), 0));
  EXPECT_TRUE(testing::close(weight.detach().to(DType::f64), example_values().to(DType::f64), 0));
  const Tensor copy = Tensor::zeros({2, 3});
  copy.copy_(weight);
  EXPECT_TRUE(testing::close(copy, example_values(), 0));
}

TEST(QuantizedTensor, RowsKeepTheirScales) {
  const Tensor row = Tensor::from_quantized(example()).narrow(0, 1, 1);
  ASSERT_NE(row.quantized(), nullptr);
  EXPECT_TRUE(testing::close(row.to(DType::f32), Tensor::from<float>({1, 3}, {8, 9.5, -253}), 0));
}

// Other views would give integers without their scales.
TEST(QuantizedTensor, OtherViewsAreErrors) {
  const Tensor weight = Tensor::from_quantized(example());
  EXPECT_THROW(weight.transpose(0, 1), Error);
  EXPECT_THROW(weight.narrow(1, 0, 2), Error);
  EXPECT_THROW(weight.view({6}), Error);
  EXPECT_THROW(weight.copy_(example_values()), Error);
}

TEST(QuantizedTensor, ScalesOrACorrectionOfAnotherShapeAreErrors) {
  QuantizedTensor weight = example();
  weight.scales = Tensor::zeros({3});
  EXPECT_THROW(Tensor::from_quantized(weight), Error);
  weight = example();
  weight.correction = std::make_shared<const QuantizedTensor>(rows_of(*weight.correction, 0, 1));
  EXPECT_THROW(Tensor::from_quantized(weight), Error);
}

TEST(QuantizedTensor, ValuesAndScalesOfOtherTypesAreErrors) {
  const auto with = [](const Tensor& values, const Tensor& scales) {
    QuantizedTensor weight;
    weight.values = values;
    weight.scales = scales;
    return Tensor::from_quantized(weight);
  };
  const Tensor values = Tensor::zeros({2, 3}, DType::i8), scales = Tensor::zeros({2});
  EXPECT_NO_THROW(with(values, scales));
  EXPECT_THROW(with({}, scales), Error);
  EXPECT_THROW(with(values, {}), Error);
  EXPECT_THROW(with(Tensor::zeros({2, 3}, DType::u8), scales), Error);
  EXPECT_THROW(with(Tensor::zeros({2}, DType::i8), scales), Error);
  EXPECT_THROW(with(values, Tensor::zeros({2}, DType::f64)), Error);
  EXPECT_THROW(with(values, Tensor::zeros({2, 1})), Error);
}

TEST(QuantizedTensor, MessagesNameBothTensors) {
  const auto refusal = [](const Tensor& values, const Tensor& scales) {
    return testing::error_of([&] { check({values, scales}); });
  };
  const Tensor values = Tensor::zeros({2, 3}, DType::i8), scales = Tensor::zeros({2});
  const std::string begin = "int8 weight: expected i8 [out, in] with scales f32 [out], got ";
  EXPECT_EQ(refusal(values, Tensor::zeros({3})), begin + "i8 [2, 3] with f32 [3]");
  EXPECT_EQ(refusal(Tensor::zeros({2, 3}), scales), begin + "f32 [2, 3] with f32 [2]");
  EXPECT_EQ(refusal({}, scales), begin + "nothing with f32 [2]");
  EXPECT_EQ(refusal(values, {}), begin + "i8 [2, 3] with nothing");
  QuantizedTensor weight{values, scales};
  weight.correction =
      std::make_shared<const QuantizedTensor>(QuantizedTensor{Tensor::zeros({4, 3}, DType::i8), Tensor::zeros({4})});
  EXPECT_ERROR(testing::error_of([&] { check(weight); }), "int8 weight", "[4, 3]");
  weight.correction = std::make_shared<const QuantizedTensor>(QuantizedTensor{values, Tensor::zeros({5})});
  EXPECT_EQ(testing::error_of([&] { check(weight); }), begin + "i8 [2, 3] with f32 [5]") << "of the correction";
  EXPECT_THROW(dequantize(weight), Error);
}

// Values and scales need not be contiguous.
TEST(QuantizedTensor, StridedPartsGiveTheSameWeight) {
  const Tensor values = Tensor::from<int8_t>({3, 2}, {1, 4, -2, 5, 127, -127}).transpose(0, 1);
  const Tensor scales = Tensor::from<float>({2, 2}, {0.5, 9, 2, 9}).select(1, 0);
  ASSERT_FALSE(values.is_contiguous() || scales.is_contiguous());
  EXPECT_TRUE(
      testing::close(dequantize({values, scales}), Tensor::from<float>({2, 3}, {0.5, -1, 63.5, 8, 10, -254}), 0));
  EXPECT_EQ(dequantize({values, scales}).dtype(), DType::f32);
  EXPECT_EQ(dequantize({values, scales}, DType::bf16).dtype(), DType::bf16);
}

TEST(QuantizedTensor, ManyRowsAreMultipliedByTheirOwnScales) {
  const Tensor values = Tensor::full({700, 101}, 3, DType::i8), scales = Tensor::zeros({700});
  for (int64_t r = 0; r < 700; ++r) scales.data<float>()[r] = static_cast<float>(r);
  const Tensor weight = dequantize({values, scales});
  for (int64_t i = 0; i < weight.numel(); ++i) ASSERT_EQ(weight.data<float>()[i], static_cast<float>(3 * (i / 101)));
}

TEST(QuantizedTensor, RefusesEachOtherOperationByItsName) {
  const Tensor weight = Tensor::from_quantized(example());
  const std::pair<const char*, std::function<void()>> calls[] = {{"view", [&] { weight.view({6}); }},
                                                                 {"permute",
                                                                  [&] {
                                                                    weight.permute({1, 0});
                                                                  }},
                                                                 {"transpose", [&] { weight.transpose(0, 1); }},
                                                                 {"narrow", [&] { weight.narrow(1, 0, 2); }},
                                                                 {"unsqueeze", [&] { weight.unsqueeze(0); }},
                                                                 {"squeeze", [&] { weight.squeeze(0); }},
                                                                 {"expand",
                                                                  [&] {
                                                                    weight.expand({4, 2, 3});
                                                                  }},
                                                                 {"reshape", [&] { weight.reshape({6}); }},
                                                                 {"reshape", [&] { weight.flatten(); }},
                                                                 {"copy_", [&] { weight.copy_(example_values()); }}};
  for (const auto& [name, call] : calls) {
    EXPECT_ERROR(testing::error_of(call), std::string(name), "int8 [2, 3]");
  }
}

TEST(QuantizedTensor, KeepsItsScalesWhereTheShapeStays) {
  const Tensor weight = Tensor::from_quantized(example());
  for (const Tensor& same : {weight.expand({2, 3}), weight.contiguous(), weight.detach(), weight.to(DType::i8),
                             weight.narrow(0, 0, 2), weight.narrow(-2, 0, 2), weight.clone()}) {
    ASSERT_NE(same.quantized(), nullptr);
    EXPECT_TRUE(testing::close(same.to(DType::f32), example_values(), 0));
  }
  EXPECT_NE(weight.clone().quantized()->values.storage(), weight.quantized()->values.storage());
  EXPECT_NE(weight.clone().quantized()->scales.storage(), weight.quantized()->scales.storage());
  EXPECT_EQ(weight.narrow(0, 2, 0).shape(), (Shape{0, 3}));
  EXPECT_THROW(weight.narrow(0, 1, 2), Error);
  EXPECT_EQ(Tensor::zeros({2, 3}, DType::i8).quantized(), nullptr);
  const QuantizedTensor last = rows_of(example(), 1, 1);
  EXPECT_TRUE(testing::close(last.scales, Tensor::from<float>({1}, {2}), 0));
  EXPECT_TRUE(testing::close(last.correction->scales, Tensor::from<float>({1}, {0.125}), 0));
  QuantizedTensor plain = example();
  plain.correction = nullptr;
  EXPECT_EQ(rows_of(plain, 0, 1).correction, nullptr);
}

}  // namespace
}  // namespace vitrail
