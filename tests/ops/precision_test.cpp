// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/precision.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/ops/inputs.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"

namespace vitrail::ops {
namespace {

using kernels::Activation;
using testing::error_of;

// Rounded to bf16, as f64.
Tensor rounded(const Tensor& t) { return t.to(DType::bf16).to(DType::f64); }

TEST(MixedPrecision, RoundsTheOperandsOfALinearLayerAndItsResult) {
  const Tensor x = Tensor::randn({5, 37}, 1), weight = Tensor::randn({11, 37}, 2), bias = Tensor::randn({11}, 3);
  const MixedPrecision scope(DType::bf16);
  const Tensor y = linear(x, weight, bias);
  EXPECT_EQ(y.dtype(), DType::bf16);
  // Half a unit in the last place of bf16's 8 bits, for results below 32.
  EXPECT_TRUE(testing::close(y, linear(rounded(x), rounded(weight), bias.to(DType::f64)), 32 * std::pow(2, -9)));
}

TEST(MixedPrecision, GradientsOfWeightsAreFloat) {
  Tensor x = Tensor::randn({64, 37}, 1), weight = Tensor::randn({11, 37}, 2);
  autograd::set_requires_grad(x, true);
  autograd::set_requires_grad(weight, true);
  const Tensor grad = Tensor::randn({64, 11}, 4).to(DType::bf16);
  Tensor y;
  {
    const MixedPrecision scope(DType::bf16);
    y = linear(x, weight, {});
  }
  autograd::backward(y, grad);  // the backward pass has the precision of the forward pass, also outside of the scope
  EXPECT_EQ(autograd::grad_of(weight).dtype(), DType::f32);
  const Tensor exact = matmul(grad.to(DType::f64).transpose(0, 1), rounded(x));
  EXPECT_TRUE(testing::close(autograd::grad_of(weight), exact, 64 * 16 * std::pow(2, -24)));
}

// A parameter between the tokens of a layer: its gradient passes from bf16 through other operations.
TEST(MixedPrecision, GradientsOfLeavesHaveTheirDtype) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tensor token = Tensor::randn({1, 37}, 1).to(dtype);
    autograd::set_requires_grad(token, true);
    autograd::backward(token.expand({2, 37}), Tensor::full({2, 37}, 0.5).to(DType::bf16));
    ASSERT_EQ(autograd::grad_of(token).dtype(), dtype);
    EXPECT_EQ(autograd::grad_of(token).to(DType::f32).data<float>()[36], 1.0f);
  }
}

// More rows than a block of the backward pass has, and a remainder.
TEST(MixedPrecision, GradientsOfBiasesAreSumsOverAllRows) {
  using kernels::Activation;
  for (const int64_t rows : {1, 431, 432, 2000}) {
    for (const Activation kind : {Activation::none, Activation::gelu}) {
      for (const DType grad_dtype : {DType::bf16, DType::f32}) {
        Tensor x = Tensor::randn({rows, 5}, 1), weight = Tensor::randn({37, 5}, 2), bias = Tensor::randn({37}, 3);
        const Tensor grad = Tensor::randn({rows, 37}, 4).to(DType::bf16);
        std::vector<Tensor> exact{rounded(x), rounded(weight), bias.to(DType::f64)};
        for (Tensor& leaf : exact) autograd::set_requires_grad(leaf, true);
        autograd::backward(linear(exact[0], exact[1], exact[2], kind), grad.to(DType::f64));
        for (Tensor* const leaf : {&x, &weight, &bias}) autograd::set_requires_grad(*leaf, true);
        const MixedPrecision scope(DType::bf16);
        autograd::backward(linear(x, weight, bias, kind), grad.to(grad_dtype));
        // The value before the activation is rounded to 2^-9 of itself, which changes slopes by as much; the errors of
        // the rows add up as a random walk.
        const double tolerance = 0.02 * std::sqrt(static_cast<double>(rows));
        EXPECT_TRUE(testing::close(autograd::grad_of(bias), autograd::grad_of(exact[2]), tolerance)) << rows;
        EXPECT_TRUE(testing::close(autograd::grad_of(weight), autograd::grad_of(exact[1]), 3 * tolerance)) << rows;
        EXPECT_TRUE(testing::close(autograd::grad_of(x), autograd::grad_of(exact[0]), 0.2)) << rows;
      }
    }
  }
}

TEST(MixedPrecision, EmptyLayersHaveGradients) {
  const MixedPrecision scope(DType::bf16);
  for (const auto& [rows, in, out] : {std::array<int64_t, 3>{0, 3, 4}, {2, 0, 4}, {2, 3, 0}}) {
    Tensor x = Tensor::randn({rows, in}, 1), weight = Tensor::randn({out, in}, 2), bias = Tensor::randn({out}, 3);
    for (Tensor* const t : {&x, &weight, &bias}) autograd::set_requires_grad(*t, true);
    const Tensor y = linear(x, weight, bias);
    EXPECT_EQ(y.shape(), (Shape{rows, out}));
    autograd::backward(y, Tensor::full({rows, out}, 1.0f).to(y.dtype()));
    for (const Tensor* const t : {&x, &weight, &bias}) EXPECT_EQ(autograd::grad_of(*t).shape(), t->shape());
    for (int64_t c = 0; c < out; ++c) {
      EXPECT_EQ(autograd::grad_of(bias).data<float>()[c], static_cast<float>(rows)) << rows << " " << in;
    }
  }
}

TEST(MixedPrecision, DoesNotChangeDoubleAndOtherOperations) {
  const MixedPrecision scope(DType::bf16);
  const Tensor x = Tensor::randn({5, 37}, 1);
  EXPECT_EQ(layer_norm(x, {}, {}, 1e-6).dtype(), DType::f32);
  EXPECT_EQ(linear(x.to(DType::f64), Tensor::randn({4, 37}, 2, DType::f64), {}).dtype(), DType::f64);
}

TEST(MixedPrecision, EndsWithItsScope) {
  {
    const MixedPrecision outer(DType::bf16);
    { const MixedPrecision inner(DType::f32); }
    EXPECT_EQ(MixedPrecision::current(), DType::bf16);
  }
  EXPECT_EQ(MixedPrecision::current(), DType::f32);
  EXPECT_THROW(MixedPrecision{DType::f16}, Error);
}

// bf16 keeps 8 bits: values below 4 are rounded by at most 2^-7.
TEST(MixedPrecision, AttentionRoundsItsOperandsAndItsResult) {
  const Tensor q = Tensor::randn({2, 3, 5, 8}, 1), k = Tensor::randn({2, 3, 7, 8}, 2),
               v = Tensor::randn({2, 3, 7, 8}, 3);
  const Tensor bias = Tensor::randn({5, 7}, 4);
  const AttentionResult exact = attention(rounded(q), rounded(k), rounded(v), 0.3, bias.to(DType::f64), true);
  const MixedPrecision scope(DType::bf16);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const AttentionResult got = attention(q.to(dtype), k.to(dtype), v.to(dtype), 0.3, bias, true);
    EXPECT_EQ(got.out.dtype(), DType::bf16);
    EXPECT_EQ(got.weights.dtype(), DType::bf16);
    EXPECT_TRUE(testing::close(got.out, exact.out, 0.03));
    EXPECT_TRUE(testing::close(got.weights, exact.weights, 0.02));
    EXPECT_FALSE(testing::close(got.out, exact.out, 1e-5)) << "rounded";
  }
  const AttentionResult half = attention(q.to(DType::f16), k.to(DType::f16), v.to(DType::f16), 0.3, bias, true);
  EXPECT_EQ(half.out.dtype(), DType::f16);
  EXPECT_EQ(attention(rounded(q), rounded(k), rounded(v), 0.3).out.dtype(), DType::f64);
}

TEST(MixedPrecision, GradientsOfAttentionAreCloseToThoseInDouble) {
  const Tensor qkv = Tensor::randn({2, 5, 24}, 1), grad = Tensor::randn({2, 5, 8}, 2);
  const Tensor exact = leaf_of(rounded(qkv));
  autograd::backward(self_attention(exact, 2, 0.4), grad.to(DType::f64));
  for (const bool fused : {true, false}) {
    const Tensor x = leaf_of(qkv);
    Tensor out;
    {
      const MixedPrecision scope(DType::bf16);
      const Tensor parts = x.view({2, 5, 3, 2, 4}).permute({2, 0, 3, 1, 4});
      out = fused ? self_attention(x, 2, 0.4)
                  : attention(parts.select(0, 0), parts.select(0, 1), parts.select(0, 2), 0.4).out;
      EXPECT_EQ(out.dtype(), DType::bf16);
    }
    autograd::backward(out, grad.to(DType::bf16));
    EXPECT_EQ(autograd::grad_of(x).dtype(), DType::f32);
    EXPECT_TRUE(testing::close(autograd::grad_of(x), autograd::grad_of(exact), 0.08)) << fused;
  }
}

TEST(MixedPrecision, ActivationsFollowTheRoundedProduct) {
  const Tensor x = Tensor::randn({6, 9}, 1), weight = Tensor::randn({5, 9}, 2), bias = Tensor::randn({5}, 3);
  const MixedPrecision scope(DType::bf16);
  for (const Activation kind : {Activation::none, Activation::gelu, Activation::relu}) {
    const Tensor product = linear(x, weight, bias).detach();
    const Tensor want = activation(product.to(DType::f32), kind).to(DType::bf16);
    const Tensor got = linear(x, weight, bias, kind), saved = linear(leaf_of(x), weight, bias, kind);
    EXPECT_EQ(got.dtype(), DType::bf16);
    EXPECT_TRUE(testing::close(got, want, 0)) << name_of(kind);
    EXPECT_TRUE(testing::close(saved, want, 0)) << name_of(kind);
  }
}

TEST(MixedPrecision, GradientsOfInputsHaveTheirDtype) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = leaf_of(Tensor::randn({4, 3}, 1).to(dtype)), weight = Tensor::randn({2, 3}, 2);
    const MixedPrecision scope(DType::bf16);
    const Tensor y = linear(x, weight, {});
    autograd::backward(y, Tensor::full({4, 2}, 1, DType::bf16));
    EXPECT_EQ(autograd::grad_of(x).dtype(), dtype);
    EXPECT_FALSE(autograd::grad_of(weight).defined());
  }
}

TEST(MixedPrecision, TheDtypeOfAGemmIsTheScopesForSingleAndBfloat16) {
  const auto of = [](DType dtype) { return gemm_dtype(Tensor::zeros({1}, dtype), "here"); };
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) EXPECT_EQ(of(dtype), DType::f32);
  EXPECT_EQ(of(DType::f64), DType::f64);
  const MixedPrecision scope(DType::bf16);
  EXPECT_EQ(of(DType::f32), DType::bf16);
  EXPECT_EQ(of(DType::bf16), DType::bf16);
  EXPECT_EQ(of(DType::f16), DType::f32);
  EXPECT_EQ(of(DType::f64), DType::f64);
  EXPECT_ERROR(error_of([&] { of(DType::i32); }), "here", "i32");
  for (const DType dtype : {DType::f64, DType::f16, DType::i64}) {
    EXPECT_EQ(error_of([&] { MixedPrecision{dtype}; }), str("precision: expected f32 or bf16, got ", name_of(dtype)));
  }
  EXPECT_EQ(MixedPrecision::current(), DType::bf16) << "a refused scope changes nothing";
}

}  // namespace
}  // namespace vitrail::ops
