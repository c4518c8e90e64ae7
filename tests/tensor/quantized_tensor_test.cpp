// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/quantized_tensor.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
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

}  // namespace
}  // namespace vitrail
