// SPDX-License-Identifier: Apache-2.0
// The fixture reader and the tensor comparison, which the other tests rely on.
#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/paths.h"

namespace vitrail::testing {
namespace {

TEST(Golden, ReadsTensorsAndConfig) {
  const Golden golden = read_golden(fixture("layers/multihead_attention_everything.safetensors"));
  EXPECT_EQ(golden["input_query"].shape(), (Shape{2, 5, 24}));
  EXPECT_EQ(golden["input_query"].dtype(), DType::f32);
  EXPECT_EQ(golden["key_padding_mask"].dtype(), DType::boolean);
  EXPECT_TRUE(golden["key_padding_mask"].data<bool>()[7]);  // all keys of the second sample are masked
  EXPECT_NE(golden.config.find("\"num_heads\": 3"), std::string::npos);
  EXPECT_FALSE(golden.has("no such tensor"));
  EXPECT_THROW(golden["no such tensor"], std::runtime_error);
}

TEST(Golden, ValuesSatisfyTheFormulaOfTheFixture) {
  const Golden golden = read_golden(fixture("layers/grad_residual_add_scale.safetensors"));
  const Tensor sum = Tensor::zeros({3, 4, 9}, DType::f64);
  for (int64_t i = 0; i < sum.numel(); ++i) {
    sum.data<double>()[i] =
        golden["x"].data<double>()[i] + golden["y"].data<double>()[i] * golden["scale"].data<double>()[i % 9];
  }
  EXPECT_TRUE(close(sum, golden["output"], 1e-15));
}

TEST(Close, ReportsTheWorstElement) {
  const Tensor want = Tensor::zeros({2, 3, 4});
  const Tensor got = want.clone();
  EXPECT_TRUE(close(got, want, 0));
  got.data<float>()[17] = 0.5F;
  got.data<float>()[2] = 0.25F;
  EXPECT_TRUE(close(got, want, 0.5));
  const auto result = close(got, want, 0.1);
  EXPECT_FALSE(result);
  EXPECT_NE(std::string(result.message()).find("2 of 24"), std::string::npos);
  EXPECT_NE(std::string(result.message()).find("[1, 1, 1]: expected 0, got 0.5"), std::string::npos)
      << result.message();
}

TEST(Close, ShapesAndNonFiniteValuesMustMatch) {
  EXPECT_FALSE(close(Tensor::zeros({2, 3}), Tensor::zeros({3, 2}), 1));
  const Tensor nan = Tensor::full({2}, NAN), infinity = Tensor::full({2}, INFINITY);
  EXPECT_TRUE(close(nan, nan, 0));
  EXPECT_TRUE(close(infinity, infinity, 0));
  EXPECT_FALSE(close(nan, Tensor::zeros({2}), 1e9));
  EXPECT_FALSE(close(Tensor::zeros({2}), infinity, 1e9));
}

TEST(Close, ComparesAcrossTypesAndStrides) {
  const Tensor rows = Tensor::from<double>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor columns = Tensor::from<float>({3, 2}, {1, 4, 2, 5, 3, 6});
  EXPECT_TRUE(close(columns.transpose(0, 1), rows, 0));
}

}  // namespace
}  // namespace vitrail::testing
