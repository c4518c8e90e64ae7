// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/inputs.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/softmax.h"

namespace vitrail::ops {
namespace {

using testing::error_of;

struct Inputs {
  Tensor q, k, v;
  Inputs(int64_t batch, int64_t heads, int64_t queries, int64_t keys, int64_t dim)
      : q(Tensor::randn({batch, heads, queries, dim}, 1)),
        k(Tensor::randn({batch, heads, keys, dim}, 2)),
        v(Tensor::randn({batch, heads, keys, dim}, 3)) {}
  AttentionResult in(DType dtype, const Tensor& bias = {}) const {
    return attention(q.to(dtype), k.to(dtype), v.to(dtype), 0.35, bias, true);
  }
};

// Scores are dot products of d ≤ 64 terms with an error of at most d · 2^-24 ≈ 4e-6, which is the relative error of a
// weight.  Weights sum to 1, so the output has an error of at most 4e-6 · max |v| ≤ 2e-5.
constexpr double kClose = 2e-5;

TEST(Attention, InFloatEqualsDoubleOnAwkwardSizes) {
  for (const int64_t queries : {1, 2, 7, 65}) {
    for (const int64_t keys : {1, 3, 16, 67}) {
      for (const int64_t dim : {1, 5, 16, 48, 64}) {
        const Inputs inputs(2, 3, queries, keys, dim);
        const AttentionResult f32 = inputs.in(DType::f32), f64 = inputs.in(DType::f64);
        ASSERT_TRUE(testing::close(f32.out, f64.out, kClose)) << queries << " " << keys << " " << dim;
        ASSERT_TRUE(testing::close(f32.weights, f64.weights, kClose)) << queries << " " << keys << " " << dim;
        const AttentionResult without = attention(inputs.q, inputs.k, inputs.v, 0.35);
        ASSERT_TRUE(testing::close(without.out, f64.out, kClose)) << queries << " " << keys << " " << dim;
        ASSERT_FALSE(without.weights.defined());
      }
    }
  }
}

TEST(Attention, TheDoubleReferenceIsTheFormula) {
  const Inputs inputs(1, 1, 2, 2, 1);
  const auto at = [](const Tensor& t, int i) { return static_cast<double>(t.data<float>()[i]); };
  const AttentionResult result = inputs.in(DType::f64);
  for (int t = 0; t < 2; ++t) {
    const double e0 = std::exp(0.35 * at(inputs.q, t) * at(inputs.k, 0));
    const double e1 = std::exp(0.35 * at(inputs.q, t) * at(inputs.k, 1));
    const double expected = (e0 * at(inputs.v, 0) + e1 * at(inputs.v, 1)) / (e0 + e1);
    EXPECT_NEAR(result.out.data<double>()[t], expected, 1e-14);
    EXPECT_NEAR(result.weights.data<double>()[2 * t], e0 / (e0 + e1), 1e-14);
  }
}

TEST(Attention, ABiasBroadcastsToTheScores) {
  const Inputs inputs(2, 3, 5, 7, 8);
  for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{2, 1, 5, 7}, Shape{1, 3, 5, 7}, Shape{2, 1, 1, 7}, Shape{5, 7},
                             Shape{1, 7}, Shape{7}, Shape{5, 1}, Shape{2, 3, 5, 1}, Shape{3, 1, 1}, Shape{1}}) {
    const Tensor bias = Tensor::randn(shape, 4);
    if (shape.rank() == 4) bias.data<float>()[0] = -INFINITY;
    const AttentionResult expected = inputs.in(DType::f64, bias), got = inputs.in(DType::f32, bias);
    EXPECT_TRUE(testing::close(got.out, expected.out, kClose)) << shape;
    EXPECT_TRUE(testing::close(got.weights, expected.weights, kClose)) << shape;
    EXPECT_TRUE(testing::close(inputs.in(DType::f32, bias.expand({2, 3, 5, 7}).contiguous()).out, got.out, 1e-6))
        << shape;
  }
}

TEST(Attention, RejectsABiasThatDoesNotBroadcastInEveryDtype) {
  const Inputs inputs(2, 3, 1, 7, 8);
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{8}, Shape{4, 3, 1, 7}, Shape{2, 2, 3, 1, 7}}) {
      EXPECT_THROW(inputs.in(dtype, Tensor::zeros(shape)), Error) << shape;
    }
    EXPECT_THROW(inputs.in(dtype, Tensor::zeros({7}, DType::boolean)), Error);
  }
}

TEST(Attention, ARowWithEveryKeyMaskedGivesZeros) {
  const Inputs inputs(1, 2, 5, 7, 8);
  const Tensor bias = Tensor::zeros({5, 7});
  for (int i = 0; i < 7; ++i) bias.data<float>()[2 * 7 + i] = -INFINITY;
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const AttentionResult result = inputs.in(dtype, bias);
    EXPECT_TRUE(testing::close(result.out.select(1, 2), Tensor::zeros({1, 16}), 0));
    EXPECT_TRUE(testing::close(result.weights.select(2, 2), Tensor::zeros({1, 2, 7}), 0));
    EXPECT_FALSE(testing::close(result.out.select(1, 1), Tensor::zeros({1, 16}), 0.01));
  }
  EXPECT_TRUE(
      testing::close(attention(inputs.q, inputs.k, inputs.v, 1, bias).out.select(1, 2), Tensor::zeros({1, 16}), 0))
      << "without weights";
}

TEST(Attention, AcceptsViewsOfAFusedProjection) {
  const Tensor qkv = Tensor::randn({2, 9, 3, 4, 6}, 1).permute({2, 0, 3, 1, 4});
  const Tensor q = qkv.select(0, 0), k = qkv.select(0, 1), v = qkv.select(0, 2);
  const Tensor expected = attention(q.contiguous(), k.contiguous(), v.contiguous(), 0.4).out;
  EXPECT_TRUE(testing::close(attention(q, k, v, 0.4).out, expected, 0));
  const Tensor columns = Tensor::randn({2, 4, 6, 9}, 2).transpose(2, 3);  // the last axis is not contiguous
  EXPECT_TRUE(testing::close(attention(columns, k, v, 0.4).out, attention(columns.contiguous(), k, v, 0.4).out, 0));
}

TEST(Attention, SixteenBitInputsAreComputedInFloatAndRoundedOnce) {
  const Inputs inputs(2, 2, 5, 7, 16);
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto wide = [&](const Tensor& t) { return t.to(dtype).to(DType::f32); };
    const AttentionResult got = inputs.in(dtype);
    const AttentionResult f32 = attention(wide(inputs.q), wide(inputs.k), wide(inputs.v), 0.35, {}, true);
    EXPECT_EQ(got.out.dtype(), dtype);
    EXPECT_TRUE(testing::close(got.out, f32.out.to(dtype), 0));
    EXPECT_TRUE(testing::close(got.weights, f32.weights.to(dtype), 0));
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  Inputs inputs(1, 1, 3, 5, 4);
  const AttentionResult result = attention(inputs.q, inputs.k, inputs.v, 1e6, {}, true);
  for (int64_t i = 0; i < result.weights.numel(); ++i) EXPECT_TRUE(std::isfinite(result.weights.data<float>()[i]));
}

TEST(Attention, EmptyBatchesAndNoKeys) {
  const auto of = [](const Shape& q, const Shape& k) {
    return attention(Tensor::zeros(q), Tensor::full(k, 1), Tensor::full(k, 1), 1, {}, true);
  };
  EXPECT_EQ(of({0, 2, 3, 4}, {0, 2, 5, 4}).out.shape(), (Shape{0, 3, 8}));
  EXPECT_EQ(of({1, 2, 0, 4}, {1, 2, 5, 4}).out.shape(), (Shape{1, 0, 8}));
  EXPECT_TRUE(testing::close(of({1, 2, 3, 4}, {1, 2, 0, 4}).out, Tensor::zeros({1, 3, 8}), 0));
}

TEST(Attention, RejectsShapesThatDoNotMatch) {
  const auto of = [](const Shape& q, const Shape& k, const Shape& v) {
    attention(Tensor::zeros(q), Tensor::zeros(k), Tensor::zeros(v), 1);
  };
  EXPECT_THROW(of({2, 3, 5, 8}, {2, 3, 7, 8}, {2, 3, 6, 8}), Error);
  EXPECT_THROW(of({2, 3, 5, 8}, {1, 3, 7, 8}, {1, 3, 7, 8}), Error);
  EXPECT_THROW(of({2, 3, 5, 8}, {2, 3, 7, 4}, {2, 3, 7, 4}), Error);
  EXPECT_THROW(of({3, 5, 8}, {3, 7, 8}, {3, 7, 8}), Error);
}

TEST(Attention, WithoutWeightsHasNoneInAnyDtypeAndTheyHaveNoGradient) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const Tensor q = leaf_of(Tensor::randn({1, 2, 3, 4}, 1).to(dtype)), k = Tensor::randn({1, 2, 5, 4}, 2).to(dtype);
    EXPECT_FALSE(attention(q, k, k, 0.5).weights.defined()) << name_of(dtype);
    const AttentionResult with = attention(q, k, k, 0.5, {}, true);
    EXPECT_EQ(with.weights.shape(), (Shape{1, 2, 3, 5}));
    EXPECT_EQ(with.weights.dtype(), dtype);
    EXPECT_FALSE(autograd::requires_grad(with.weights));
    EXPECT_TRUE(autograd::requires_grad(with.out));
  }
}

TEST(Attention, ErrorsNameShapesAndTheBias) {
  const Tensor q = Tensor::zeros({2, 3, 5, 8}), k = Tensor::zeros({2, 3, 7, 8});
  EXPECT_ERROR(error_of([&] { attention(q, k, q, 1); }), "attention", "[2, 3, 5, 8], [2, 3, 7, 8], [2, 3, 5, 8]");
  EXPECT_ERROR(error_of([&] { attention(q, k, k, 1, Tensor::zeros({5, 7}, DType::i64)); }), "attention", "i64 [5, 7]");
  EXPECT_ERROR(error_of([&] { self_attention(Tensor::zeros({2, 5, 25}), 4, 1); }), "self_attention", "[2, 5, 25]");
  for (const int64_t queries : {-1, 6}) {
    EXPECT_ERROR(error_of([&] {
                   self_attention(Tensor::zeros({2, 5, 24}), 4, 1, queries);
                 }),
                 "self_attention", std::to_string(queries));
  }
}

TEST(SelfAttention, TakesFusedProjectionsOfItsHeads) {
  const Tensor qkv = Tensor::randn({2, 5, 36}, 1);
  EXPECT_EQ(self_attention(qkv, 3, 0.5).shape(), self_attention(qkv, 2, 0.5).shape());
  EXPECT_FALSE(testing::close(self_attention(qkv, 3, 0.5), self_attention(qkv, 2, 0.5), 1e-3));
  for (const int64_t heads : {0, -1, 5, 24}) EXPECT_THROW(self_attention(qkv, heads, 0.5), Error) << heads;
  EXPECT_THROW(self_attention(qkv.select(0, 0), 3, 0.5), Error);
}

// [B, N, (q, k, v), H, d]
TEST(SelfAttention, IsTheAttentionOfTheThreeParts) {
  const Tensor qkv = Tensor::randn({2, 5, 3 * 2 * 4}, 1);
  const Tensor parts = qkv.view({2, 5, 3, 2, 4}).permute({2, 0, 3, 1, 4});
  for (const DType dtype : {DType::f64, DType::f32}) {
    const auto part = [&](int64_t i) { return parts.select(0, i).contiguous().to(dtype); };
    const Tensor want = attention(part(0), part(1), part(2), 0.3).out;
    EXPECT_TRUE(testing::close(self_attention(qkv.to(dtype), 2, 0.3), want, 1e-6));
    EXPECT_TRUE(testing::close(self_attention(leaf_of(qkv.to(dtype)), 2, 0.3), want, 1e-6)) << "recorded";
    for (const Tensor& x : {qkv.to(dtype), leaf_of(qkv.to(dtype))})
      EXPECT_TRUE(testing::close(self_attention(x, 2, 0.3, 2), want.narrow(1, 0, 2), 1e-6)) << "the first queries";
  }
}

TEST(Softmax, RowsSumToOneAndMaskedRowsAreZero) {
  const Tensor x = Tensor::randn({4, 33}, 1);
  for (int i = 0; i < 33; ++i) x.data<float>()[33 + i] = -INFINITY;
  const Tensor y = softmax(x);
  EXPECT_TRUE(testing::close(y, softmax(x.to(DType::f64)), 1e-6));
  for (int r = 0; r < 4; ++r) {
    double sum = 0;
    for (int c = 0; c < 33; ++c) sum += y.data<float>()[r * 33 + c];
    EXPECT_NEAR(sum, r == 1 ? 0 : 1, 1e-6);
  }
  EXPECT_THROW(softmax(Tensor::zeros({2}, DType::i32)), Error);
}

TEST(Softmax, IsTheShareOfEachExponential) {
  const Tensor x = Tensor::from<double>({2, 3}, {0, 1, 3, -2, -2, 5});
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Tensor y = softmax(x.to(dtype)).to(DType::f64);
    for (int64_t r = 0; r < 2; ++r) {
      const double* const row = x.data<double>() + 3 * r;
      const double sum = std::exp(row[0]) + std::exp(row[1]) + std::exp(row[2]);
      for (int64_t c = 0; c < 3; ++c) EXPECT_NEAR(y.data<double>()[3 * r + c], std::exp(row[c]) / sum, 3e-7);
    }
  }
  EXPECT_EQ(softmax(Tensor::zeros({2, 0})).shape(), (Shape{2, 0}));
  EXPECT_EQ(softmax(Tensor::zeros({2, 3}, DType::f16)).dtype(), DType::f16);
}

TEST(MergeHeads, ConcatenatesHeads) {
  const Tensor x = Tensor::randn({2, 3, 5, 4}, 1);
  const Tensor merged = merge_heads(x);
  EXPECT_EQ(merged.shape(), (Shape{2, 5, 12}));
  EXPECT_TRUE(testing::close(merged.view({2, 5, 3, 4}).transpose(1, 2), x, 0));
  EXPECT_TRUE(testing::close(merge_heads(Tensor::randn({2, 3, 1, 4}, 2)).select(1, 0).select(0, 1),
                             Tensor::randn({2, 3, 1, 4}, 2).select(0, 1).reshape({12}), 0));
}

}  // namespace
}  // namespace vitrail::ops
