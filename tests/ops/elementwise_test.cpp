#include "vitrail/ops/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "vitrail/base/error.h"
#include "vitrail/kernels/scalar.h"

namespace vitrail::ops {
namespace {

constexpr DType kFloating[] = {DType::f64, DType::f32, DType::bf16, DType::f16};

TEST(Add, BroadcastsAsNumPyDoes) {
  const Tensor column = Tensor::from<float>({2, 1}, {10, 20}), row = Tensor::from<float>({3}, {1, 2, 3});
  EXPECT_TRUE(testing::close(add(column, row), Tensor::from<float>({2, 3}, {11, 12, 13, 21, 22, 23}), 0));
  EXPECT_TRUE(testing::close(mul(row, column), Tensor::from<float>({2, 3}, {10, 20, 30, 20, 40, 60}), 0));
  EXPECT_EQ(add(Tensor::zeros({2, 1, 4}), Tensor::zeros({3, 1})).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(add(Tensor::zeros({2, 0}), Tensor::zeros({1})).shape(), (Shape{2, 0}));
  EXPECT_THROW(add(Tensor::zeros({2, 3}), Tensor::zeros({2})), Error);
  EXPECT_THROW(add(Tensor::zeros({2}, DType::i64), Tensor::zeros({2}, DType::i64)), Error);
}

TEST(Add, TakesAnyLayoutAndKeepsTheFirstDtype) {
  const Tensor x = Tensor::randn({4, 3}, 1), y = Tensor::randn({3, 4}, 2);
  EXPECT_TRUE(testing::close(add(x.transpose(0, 1), y), add(x.transpose(0, 1).contiguous(), y), 0));
  for (const DType dtype : kFloating) EXPECT_EQ(add(x.to(dtype), x).dtype(), dtype);
  EXPECT_TRUE(testing::close(mul(Tensor::full({1}, 1 + 1e-12, DType::f64), Tensor::full({1}, 1, DType::f64)),
                             Tensor::full({1}, 1 + 1e-12, DType::f64), 0))
      << "f64 is computed in double";
}

TEST(Elementwise, SixteenBitInputsAreComputedInFloatAndRoundedOnce) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Tensor a = Tensor::randn({5, 8}, 1).to(dtype), b = Tensor::randn({5, 8}, 2).to(dtype);
    const Tensor af = a.to(DType::f32), bf = b.to(DType::f32);
    EXPECT_TRUE(testing::close(add(a, b), add(af, bf).to(dtype), 0));
    EXPECT_TRUE(testing::close(mul(a, b), mul(af, bf).to(dtype), 0));
    EXPECT_TRUE(testing::close(silu_gate(a), silu_gate(af).to(dtype), 0));
    EXPECT_TRUE(testing::close(mean(a, 0), mean(af, 0).to(dtype), 0));
    EXPECT_TRUE(testing::close(activation(a, kernels::Activation::gelu),
                               activation(af, kernels::Activation::gelu).to(dtype), 0));
    EXPECT_TRUE(testing::close(cat({a, b}, 1), cat({af, bf}, 1), 0));
  }
}

// A vector kernel's activation is accurate to a few units in the last place of values below 8.
TEST(Activation, InFloatEqualsDouble) {
  using kernels::Activation;
  const Tensor x = mul(Tensor::randn({1000}, 1, DType::f64), Tensor::full({1}, 2, DType::f64)).to(DType::f32);
  for (const Activation kind : {Activation::none, Activation::gelu, Activation::gelu_tanh, Activation::quick_gelu,
                                Activation::relu, Activation::silu, Activation::tanh}) {
    EXPECT_TRUE(testing::close(activation(x, kind), activation(x.to(DType::f64), kind), 2e-6)) << name_of(kind);
  }
  EXPECT_EQ(activation(Tensor::zeros({2, 0}), Activation::gelu).shape(), (Shape{2, 0}));
}

TEST(SiluGate, MultipliesTheSecondHalfByTheFirst) {
  const Tensor x = Tensor::randn({3, 2, 10}, 1, DType::f64);
  const Tensor expected = mul(activation(x.narrow(2, 0, 5), kernels::Activation::silu), x.narrow(2, 5, 5));
  EXPECT_TRUE(testing::close(silu_gate(x), expected, 0));
  EXPECT_TRUE(testing::close(silu_gate(x.to(DType::f32)), expected, 2e-6));
  EXPECT_THROW(silu_gate(Tensor::zeros({2, 3})), Error);
  EXPECT_EQ(silu_gate(Tensor::zeros({2, 0})).shape(), (Shape{2, 0}));
}

TEST(Cat, JoinsAlongAnyAxisAndDtype) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64, DType::u8, DType::boolean}) {
    const Tensor a = Tensor::full({2, 1, 3}, 1, dtype), b = Tensor::zeros({2, 4, 3}, dtype);
    const Tensor joined = cat({a, b, a}, 1);
    EXPECT_EQ(joined.shape(), (Shape{2, 6, 3}));
    EXPECT_EQ(joined.dtype(), dtype);
    EXPECT_TRUE(testing::close(joined.narrow(1, 0, 1), a, 0));
    EXPECT_TRUE(testing::close(joined.narrow(1, 1, 4), b, 0));
    EXPECT_TRUE(testing::close(joined.narrow(1, 5, 1), a, 0));
  }
  EXPECT_EQ(cat({Tensor::zeros({2, 3}), Tensor::zeros({2, 1})}, -1).shape(), (Shape{2, 4}));
  const Tensor strided = Tensor::randn({3, 2}, 1).transpose(0, 1);
  EXPECT_TRUE(testing::close(cat({strided.expand({2, 3})}, 0), strided, 0));
}

TEST(Cat, ShapesThatDoNotAgreeAreErrors) {
  EXPECT_THROW(cat({}, 0), Error);
  EXPECT_THROW(cat({Tensor::zeros({2, 3}), Tensor::zeros({2, 4})}, 0), Error);
  EXPECT_THROW(cat({Tensor::zeros({2, 3}), Tensor::zeros({2, 3, 1})}, 0), Error);
  EXPECT_THROW(cat({Tensor::zeros({2, 3})}, 2), Error);
  EXPECT_THROW(cat({Tensor::zeros({2, 3})}, -3), Error);
}

TEST(Mean, DropsItsAxis) {
  const Tensor x = Tensor::from<float>({2, 3}, {1, 2, 3, 5, 7, 9});
  EXPECT_TRUE(testing::close(mean(x, 0), Tensor::from<float>({3}, {3, 4.5, 6}), 0));
  EXPECT_TRUE(testing::close(mean(x, -1), Tensor::from<float>({2}, {2, 7}), 0));
  const Tensor big = Tensor::randn({4, 197, 6}, 1);
  EXPECT_TRUE(testing::close(mean(big, 1), mean(big.to(DType::f64), 1), 197 * std::pow(2, -24)));
  EXPECT_TRUE(testing::close(mean(big.permute({2, 0, 1}), 2), mean(big, 1).transpose(0, 1), 1e-6));
  EXPECT_THROW(mean(x, 2), Error);
  EXPECT_EQ(mean(Tensor::zeros({2, 3, 0}), 1).shape(), (Shape{2, 0}));
}

TEST(Contiguous, CopiesOnlyWhatIsNot) {
  const Tensor x = Tensor::randn({3, 4}, 1);
  EXPECT_EQ(contiguous(x).storage(), x.storage());
  const Tensor t = contiguous(x.transpose(0, 1));
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_TRUE(testing::close(t, x.transpose(0, 1), 0));
}

TEST(DropoutMask, HoldsZerosAndTheScale) {
  const Tensor mask = dropout_mask({10000}, 0.2, 5, DType::f64);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double m = mask.data<double>()[i];
    ASSERT_TRUE(m == 0 || m == 1 / 0.8) << m;
    sum += m;
  }
  EXPECT_NEAR(sum / 10000, 1, 6 * std::sqrt(0.25 / 10000));  // variance p / (1 − p), six deviations
  EXPECT_TRUE(testing::close(dropout_mask({10000}, 0.2, 5, DType::f32), mask, 0));
}

}  // namespace
}  // namespace vitrail::ops
