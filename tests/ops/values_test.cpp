// SPDX-License-Identifier: Apache-2.0
// Values of operations against their definitions, computed by slow loops, and in mixed precision.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/random.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/conversion_internal.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/mask_loss.h"
#include "vitrail/ops/patchify.h"
#include "vitrail/ops/precision.h"
#include "vitrail/ops/relative_attention.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/rms_norm.h"
#include "vitrail/ops/rotary.h"
#include "vitrail/ops/softmax.h"
#include "vitrail/ops/token_merging.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/ops/window.h"

namespace vitrail::ops {
namespace {

using kernels::Activation;
using testing::error_of;

Tensor draw(const Shape& shape, uint64_t seed) { return Tensor::randn(shape, seed, DType::f64); }

Tensor leaf_of(const Tensor& value) {
  Tensor leaf = value.clone();
  autograd::set_requires_grad(leaf, true);
  return leaf;
}

// Rounded to bf16, as f64.
Tensor rounded(const Tensor& t) { return t.to(DType::bf16).to(DType::f64); }

TEST(Activation, ValuesAreThoseOfTheirFormulas) {
  const double points[] = {-3, -0.75, -0.0, 0.5, 2};
  for (const double x : points) {
    const double cube = x + 0.044715 * x * x * x;
    const std::pair<Activation, double> values[] = {
        {Activation::none, x},
        {Activation::gelu, x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)))},
        {Activation::gelu_tanh, 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * cube))},
        {Activation::quick_gelu, x / (1 + std::exp(-1.702 * x))},
        {Activation::relu, std::max(x, 0.0)},
        {Activation::silu, x / (1 + std::exp(-x))},
        {Activation::tanh, std::tanh(x)}};
    for (const auto& [kind, want] : values) {
      EXPECT_NEAR(activation(Tensor::full({1}, x, DType::f64), kind).item<double>(), want, 1e-14) << name_of(kind);
      EXPECT_NEAR(activation(Tensor::full({1}, x), kind).item<double>(), want, 1e-6) << name_of(kind);
    }
  }
}

TEST(Activation, OfNoneGivesTheGradientItself) {
  const Tensor grad = draw({3}, 1);
  EXPECT_EQ(activation_backward(Activation::none, {}, grad).storage(), grad.storage());
}

TEST(LayerNorm, NormalisesRowsThenScalesAndShifts) {
  const Tensor x = draw({2, 3, 5}, 1), gamma = draw({5}, 2), beta = draw({5}, 3);
  const double eps = 0.3;
  for (const bool scaled : {false, true}) {
    for (const bool shifted : {false, true}) {
      const Tensor want = Tensor::empty({2, 3, 5}, DType::f64);
      for (int64_t r = 0; r < 6; ++r) {
        const double* const row = x.data<double>() + r * 5;
        double mean = 0, variance = 0;
        for (int64_t c = 0; c < 5; ++c) mean += row[c] / 5;
        for (int64_t c = 0; c < 5; ++c) variance += (row[c] - mean) * (row[c] - mean) / 5;
        for (int64_t c = 0; c < 5; ++c) {
          const double g = scaled ? gamma.data<double>()[c] : 1, b = shifted ? beta.data<double>()[c] : 0;
          want.data<double>()[r * 5 + c] = (row[c] - mean) / std::sqrt(variance + eps) * g + b;
        }
      }
      const Tensor g = scaled ? gamma : Tensor(), b = shifted ? beta : Tensor();
      EXPECT_TRUE(testing::close(layer_norm(x, g, b, eps), want, 1e-14));
      EXPECT_TRUE(testing::close(layer_norm(x.to(DType::f32), g, b, eps), want, 2e-6));
    }
  }
}

TEST(Gradient, OfLinearAndLayerNormEqualCentralDifferences) {
  const auto worst = [](const std::function<Tensor(const std::vector<Tensor>&)>& function,
                        const std::vector<Tensor>& inputs) {
    return autograd::check_gradients(function, inputs).worst;
  };
  for (const Activation kind : {Activation::none, Activation::gelu}) {
    EXPECT_LT(worst([kind](const auto& in) { return linear(in[0], in[1], in[2], kind); },
                    {draw({2, 3, 4}, 1), draw({5, 4}, 2), draw({5}, 3)}),
              1e-8);
    EXPECT_LT(
        worst([kind](const auto& in) { return linear(in[0], in[1], {}, kind); }, {draw({3, 4}, 1), draw({5, 4}, 2)}),
        1e-8);
  }
  EXPECT_LT(worst([](const auto& in) { return layer_norm(in[0], in[1], in[2], 0.1); },
                  {draw({2, 3, 4}, 1), draw({4}, 2), draw({4}, 3)}),
            1e-8);
  EXPECT_LT(worst([](const auto& in) { return layer_norm(in[0], {}, in[1], 0.1); }, {draw({3, 4}, 1), draw({4}, 3)}),
            1e-8);
  EXPECT_LT(worst([](const auto& in) { return layer_norm(in[0], in[1], {}, 0.1); }, {draw({3, 4}, 1), draw({4}, 3)}),
            1e-8);
  EXPECT_LT(worst([](const auto& in) { return residual_add(in[0], in[1]); }, {draw({3, 4}, 1), draw({3, 4}, 3)}), 1e-8);
}

TEST(ResidualAdd, InDoubleIsTheFormulaForEachSample) {
  const Tensor x = draw({3, 2, 4}, 1), y = draw({3, 2, 4}, 2), scale = draw({4}, 3);
  const Tensor keep = Tensor::from<double>({3}, {0, 1.25, 2});
  for (const bool scaled : {false, true}) {
    for (const bool kept : {false, true}) {
      const Tensor want = Tensor::empty({3, 2, 4}, DType::f64);
      for (int64_t i = 0; i < 24; ++i) {
        const double s = scaled ? scale.data<double>()[i % 4] : 1, k = kept ? keep.data<double>()[i / 8] : 1;
        want.data<double>()[i] = x.data<double>()[i] + k * s * y.data<double>()[i];
      }
      const Tensor s = scaled ? scale : Tensor(), k = kept ? keep : Tensor();
      EXPECT_TRUE(testing::close(residual_add(x, y, s, k), want, 1e-15));
      EXPECT_TRUE(testing::close(residual_add(x.to(DType::f32), y, s, k), want, 1e-6));
    }
  }
  EXPECT_EQ(residual_add(x.to(DType::f16), y).dtype(), DType::f16);
}

TEST(ResidualAdd, ErrorsNameTheWrongPart) {
  const Tensor x = Tensor::zeros({3, 5});
  EXPECT_EQ(error_of([&] {
              residual_add(x, Tensor::zeros({3, 4}));
            }),
            "residual_add: expected two tensors of one shape, got [3, 5] and [3, 4]");
  EXPECT_EQ(error_of([&] { residual_add(x, x, Tensor::zeros({3})); }), "residual_add: expected a scale [5], got [3]");
  EXPECT_EQ(error_of([&] { residual_add(x, x, {}, Tensor::zeros({5}, DType::f64)); }),
            "residual_add: expected f64 keep factors [3], got f64 [5]");
  EXPECT_EQ(error_of([&] { residual_add(x, x, {}, Tensor::zeros({3})); }),
            "residual_add: expected f64 keep factors [3], got f32 [3]");
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
  EXPECT_EQ(error_of([&] { attention(q, k, q, 1); }),
            "attention: expected q [B, H, T, d], k and v [B, H, S, d], got [2, 3, 5, 8], [2, 3, 7, 8], [2, 3, 5, 8]");
  EXPECT_EQ(error_of([&] {
              attention(q, k, k, 1, Tensor::zeros({5, 7}, DType::i64));
            }),
            "attention: expected a floating bias that broadcasts to [2, 3, 5, 7], got i64 [5, 7]");
  EXPECT_EQ(error_of([&] {
              self_attention(Tensor::zeros({2, 5, 25}), 4, 1);
            }),
            "self_attention: expected qkv [B, N, 3·4·d], got [2, 5, 25]");
  for (const int64_t queries : {-1, 6}) {
    EXPECT_EQ(error_of([&] {
                self_attention(Tensor::zeros({2, 5, 24}), 4, 1, queries);
              }),
              "self_attention: expected 0 to 5 queries, got " + std::to_string(queries));
  }
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
  EXPECT_EQ(error_of([&] { of(DType::i32); }), "here: expected a floating tensor, got i32");
  for (const DType dtype : {DType::f64, DType::f16, DType::i64}) {
    EXPECT_EQ(error_of([&] { MixedPrecision{dtype}; }), str("precision: expected f32 or bf16, got ", name_of(dtype)));
  }
  EXPECT_EQ(MixedPrecision::current(), DType::bf16) << "a refused scope changes nothing";
}

TEST(Converted, IsTheConversionOfAnyLayout) {
  const Tensor x = Tensor::randn({5, 7}, 1);
  for (const DType from : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (const DType to : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      const Tensor dense = x.to(from), strided = dense.transpose(0, 1);
      EXPECT_EQ(converted(dense, to).dtype(), to);
      EXPECT_TRUE(testing::close(converted(dense, to), dense.to(to), 0));
      EXPECT_TRUE(testing::close(converted(strided, to), strided.to(to), 0));
    }
  }
  const Tensor none = converted(Tensor::empty({2}, DType::f32, Device::meta), DType::bf16);
  EXPECT_TRUE(none.is_meta());
  EXPECT_EQ(none.dtype(), DType::bf16);
}

// Element i of sample b is dropped if the i-th draw of the stream (key, position of b) is below p · 2^32.
TEST(DropoutMask, FollowsTheDrawsOfItsKeyAndPosition) {
  const double p = 0.3;
  const auto threshold = static_cast<uint32_t>(p * 4294967296.0);
  for (const std::vector<int64_t>& positions : {std::vector<int64_t>{}, {7, 2, 5}}) {
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      const Tensor mask = dropout_mask({3, 2, 20}, p, 11, positions, dtype);
      ASSERT_EQ(mask.dtype(), dtype);
      ASSERT_EQ(mask.shape(), (Shape{3, 2, 20}));
      const Tensor values = mask.to(DType::f64).contiguous();
      const double kept = Tensor::full({}, 1 / (1 - p), dtype).to(DType::f64).item<double>();
      for (int64_t b = 0; b < 3; ++b) {
        RandomStream random(11, static_cast<uint64_t>(positions.empty() ? b : positions[static_cast<size_t>(b)]));
        for (int64_t i = 0; i < 40; ++i) {
          ASSERT_NEAR(values.data<double>()[b * 40 + i], random.bits() < threshold ? 0 : kept, 1e-7) << b << " " << i;
        }
      }
    }
  }
  EXPECT_EQ(dropout_mask({}, 0.5, 1, {}, DType::f32).numel(), 1);
  EXPECT_EQ(dropout_mask({0, 4}, 0.5, 1, {}, DType::f32).shape(), (Shape{0, 4}));
  EXPECT_EQ(error_of([] {
              dropout_mask({3, 4}, 0.5, 1, {0, 1}, DType::f32);
            }),
            "dropout: expected 3 sample positions, got 2");
}

TEST(ReducedTo, SumsWhatBroadcastingRepeats) {
  const Tensor grad = draw({2, 3, 4}, 1);
  for (const Shape& shape : {Shape{2, 3, 4}, Shape{3, 4}, Shape{4}, Shape{1, 3, 4}, Shape{2, 1, 4}, Shape{2, 3, 1},
                             Shape{1, 4}, Shape{3, 1}, Shape{1}, Shape{1, 1, 1}}) {
    const Tensor want = Tensor::zeros(shape, DType::f64);
    const Tensor spread = want.expand({2, 3, 4});
    for (int64_t i = 0; i < 24; ++i) {
      const int64_t at = i / 12 * spread.strides()[0] + i / 4 % 3 * spread.strides()[1] + i % 4 * spread.strides()[2];
      want.data<double>()[at] += grad.data<double>()[i];
    }
    EXPECT_TRUE(testing::close(reduced_to(grad, shape), want, 1e-14)) << shape;
    const Tensor single = reduced_to(grad.to(DType::f32), shape);
    EXPECT_EQ(single.dtype(), DType::f32);
    EXPECT_TRUE(testing::close(single, want, 1e-5)) << shape;
    EXPECT_EQ(reduced_to(grad.to(DType::bf16), shape).dtype(), DType::bf16);
  }
  EXPECT_EQ(reduced_to(grad, {2, 3, 4}).storage(), grad.storage());
  EXPECT_TRUE(testing::close(reduced_to(Tensor::zeros({0, 3}), {3}), Tensor::zeros({3}), 0));
}

TEST(Embedding, KeepsTheDtypeOfItsTableAndTakesIntegersOfAnyWidth) {
  const Tensor table = Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (const DType ids : {DType::i64, DType::i32, DType::i8, DType::u8}) {
      const Tensor got = embedding(Tensor::from<int64_t>({3}, {2, 0, 2}).to(ids), table.to(dtype));
      EXPECT_EQ(got.dtype(), dtype);
      EXPECT_TRUE(testing::close(got, Tensor::from<float>({3, 2}, {5, 6, 1, 2, 5, 6}), 0));
    }
  }
  Tensor leaf = leaf_of(table);
  autograd::backward(embedding(Tensor::from<int64_t>({3}, {2, 0, 2}), leaf),
                     Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(testing::close(autograd::grad_of(leaf), Tensor::from<float>({3, 2}, {3, 4, 0, 0, 6, 8}), 0));
  EXPECT_EQ(error_of([&] { embedding(Tensor::zeros({2}), table); }),
            "embedding: expected integer ids and a weight [V, C], got ids f32 and a weight [3, 2]");
  EXPECT_EQ(error_of([&] {
              embedding(Tensor::from<int64_t>({3}, {1, -1, 5}), table);
            }),
            "embedding: expected ids from 0 to 2, got -1");
}

TEST(MergeTokens, KeepsTheDtypeAndNamesWhatDoesNotFit) {
  const Tensor x = Tensor::randn({2, 7, 4}, 1), keys = Tensor::randn({2, 3, 7, 5}, 2);
  EXPECT_EQ(merge_tokens(x.to(DType::bf16), keys, {}, 2, 1).x.dtype(), DType::bf16);
  EXPECT_EQ(merge_tokens(x, keys, {}, 2, 1).sizes.dtype(), DType::f32);
  EXPECT_EQ(error_of([&] {
              merge_tokens(x, keys, Tensor::zeros({2, 6}), 2, 1);
            }),
            "merge_tokens: expected x [B, N, C], keys [B, H, N, d], sizes [B, N], got [2, 7, 4], [2, 3, 7, 5], [2, 6]");
  EXPECT_EQ(error_of([&] {
              merge_tokens(x, Tensor::zeros({2, 3, 6, 5}), {}, 2, 1);
            }),
            "merge_tokens: expected x [B, N, C], keys [B, H, N, d], sizes [B, N], got [2, 7, 4], [2, 3, 6, 5]");
  EXPECT_EQ(error_of([&] { merge_tokens(x, keys, {}, 4, 1); }),
            "merge_tokens: expected at most 3 of 7 tokens, 1 of them a prefix, got 4");
  EXPECT_EQ(error_of([&] { merge_tokens(x, leaf_of(keys), {}, 1, 1); }),
            "merge_tokens: expected inputs that require no gradient, got inputs that do");
}

TEST(LossOptions, HaveTheDefaultsOfTheirPapers) {
  EXPECT_EQ(FocalOptions().alpha, 0.25);
  EXPECT_EQ(FocalOptions().gamma, 2);
  EXPECT_EQ(DistillationOptions().temperature, 1);
  EXPECT_FALSE(DistillationOptions().hard);
  EXPECT_FALSE(DistillationOptions().per_element);
  EXPECT_EQ(BceOptions().label_smoothing, 0);
  EXPECT_FALSE(BceOptions().threshold);
  EXPECT_FALSE(BceOptions().sum_classes);
}

TEST(MaskLossOptions, TakeTheLimitsOfTheirOptions) {
  const Tensor logits = Tensor::from<double>({1, 1, 2}, {0, 1}), targets = Tensor::from<double>({1, 2}, {1, 0});
  const auto loss = [&](double alpha, double gamma) {
    return focal_loss(logits, targets, {.alpha = alpha, .gamma = gamma}).item<double>();
  };
  const double p0 = 0.5, p1 = 1 / (1 + std::exp(-1.0)), first = -std::log(p0), second = -std::log(1 - p1);
  EXPECT_NEAR(loss(1, 0), first / 2, 1e-15);
  EXPECT_NEAR(loss(0, 0), second / 2, 1e-15);
  EXPECT_NEAR(loss(1, 1), (1 - p0) * first / 2, 1e-15);
  EXPECT_NEAR(loss(0, 1), p1 * second / 2, 1e-15);
  EXPECT_NEAR(loss(0.25, 2), (0.25 * 0.25 * first + 0.75 * p1 * p1 * second) / 2, 1e-15);
  EXPECT_NEAR(loss(0.25, 3), (0.25 * 0.125 * first + 0.75 * p1 * p1 * p1 * second) / 2, 1e-15);
  EXPECT_NEAR(dice_loss(logits, targets).item<double>(), 1 - (2 * p0 + 1) / (p0 + p1 + 1 + 1), 1e-15);
  EXPECT_EQ(error_of([&] { loss(1.5, 0.5); }),
            "focal_loss: expected alpha from 0 to 1, and gamma 0 or at least 1, got 1.5, 0.5");
  EXPECT_EQ(error_of([&] {
              dice_loss(logits, Tensor::zeros({2, 2}));
            }),
            "dice_loss: expected logits [B, M, P] and targets [B, P], got [1, 1, 2] and [2, 2]");
  EXPECT_EQ(error_of([&] {
              focal_loss(logits, Tensor::zeros({1, 3}));
            }),
            "focal_loss: expected logits [B, M, P] and targets [B, P], got [1, 1, 2] and [1, 3]");
}

TEST(LossOptions, ErrorsNameTheLoss) {
  const Tensor logits = Tensor::zeros({2, 3}), labels = Tensor::zeros({2}, DType::i64);
  EXPECT_EQ(error_of([&] { bce_with_logits(logits, labels, {.label_smoothing = 1}); }),
            "bce_with_logits: expected a label smoothing in [0, 1), got 1");
  EXPECT_EQ(error_of([&] { cross_entropy(logits, labels, -0.5); }),
            "cross_entropy: expected a label smoothing in [0, 1), got -0.5");
  EXPECT_EQ(error_of([&] { bce_with_logits(logits, Tensor::zeros({3}, DType::i64)); }),
            "bce_with_logits: expected labels i64 [2] or a distribution [2, 3], got i64 [3]");
  EXPECT_EQ(error_of([&] { bce_with_logits(logits, Tensor::zeros({2}, DType::i32)); }),
            "bce_with_logits: expected labels i64 [2] or a distribution [2, 3], got i32 [2]");
  EXPECT_EQ(error_of([&] {
              bce_with_logits(logits, Tensor::from<int64_t>({2}, {-1, 7}));
            }),
            "bce_with_logits: expected labels from 0 to 2, got -1 for sample 0");
  EXPECT_EQ(error_of([&] { distillation(Tensor::zeros({3}), logits); }),
            "distillation: expected logits [B, C] of at least one row and class, got [3]");
  for (const double temperature : {0.0, -2.0}) {
    EXPECT_EQ(error_of([&] { distillation(logits, logits, {.temperature = temperature}); }),
              str("distillation: expected a temperature above 0, got ", temperature));
  }
  EXPECT_NO_THROW(distillation(logits, logits, {.hard = true, .temperature = 0}));
  EXPECT_EQ(error_of([&] {
              weighted_sum({Tensor::zeros({}), Tensor::zeros({}, DType::f64)}, {1, 2});
            }),
            "weighted_sum: expected f32, got f64");
  EXPECT_EQ(error_of([&] {
              weighted_sum({Tensor::zeros({})}, {1, 2});
            }),
            "weighted_sum: expected a weight for each of at least one term, got 1 terms and 2 weights");
}

TEST(WeightedSum, GivesEachTermItsWeightTimesTheGradient) {
  const Tensor a = leaf_of(Tensor::full({}, 3, DType::f64)), b = leaf_of(Tensor::full({1}, 5, DType::f64));
  const Tensor sum = weighted_sum({a, b}, {0.5, -2});
  EXPECT_EQ(sum.item<double>(), -8.5);
  autograd::backward(sum, Tensor::full({}, 10, DType::f64));
  EXPECT_EQ(autograd::grad_of(a).item<double>(), 5);
  EXPECT_EQ(autograd::grad_of(b).item<double>(), -20);
  EXPECT_EQ(autograd::grad_of(b).shape(), (Shape{1}));
}

TEST(CrossEntropy, WeighsClassesAndDividesByTheWeightsOfTheLabels) {
  const Tensor logits = draw({3, 4}, 1), weights = Tensor::from<double>({4}, {0.5, 2, 1, 3});
  const Tensor labels = Tensor::from<int64_t>({3}, {1, 3, 1});
  const auto log_softmax = [&](int64_t r, int64_t c) {
    const double* const row = logits.data<double>() + r * 4;
    double sum = 0;
    for (int64_t i = 0; i < 4; ++i) sum += std::exp(row[i]);
    return row[c] - std::log(sum);
  };
  for (const double smoothing : {0.0, 0.2}) {
    double sum = 0, plain = 0, soft = 0;
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t c = 0; c < 4; ++c) {
        const double t = (1 - smoothing) * (labels.data<int64_t>()[r] == c ? 1 : 0) + smoothing / 4;
        sum -= weights.data<double>()[c] * t * log_softmax(r, c);
        plain -= t * log_softmax(r, c);
      }
    }
    EXPECT_NEAR(cross_entropy(logits, labels, smoothing).item<double>(), plain / 3, 1e-14);
    EXPECT_NEAR(cross_entropy(logits, labels, smoothing, weights).item<double>(), sum / (2 + 3 + 2), 1e-14);
    const Tensor targets = Tensor::from<double>({3, 4}, {0.1, 0.2, 0.3, 0.4, 1, 0, 0, 0, 0.25, 0.25, 0.25, 0.25});
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t c = 0; c < 4; ++c) {
        const double t = (1 - smoothing) * targets.data<double>()[r * 4 + c] + smoothing / 4;
        soft -= weights.data<double>()[c] * t * log_softmax(r, c);
      }
    }
    EXPECT_NEAR(cross_entropy(logits, targets, smoothing, weights).item<double>(), soft / 3, 1e-14);
  }
}

// Each operation names itself where its input has no floating dtype.
TEST(Operations, RefuseIntegersByTheirNames) {
  const auto i = [](const Shape& shape) { return Tensor::zeros(shape, DType::i64); };
  const auto f = [](const Shape& shape) { return Tensor::zeros(shape); };
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"activation", [&] { activation(i({2}), Activation::gelu); }},
      {"silu_gate",
       [&] {
         silu_gate(i({2, 4}));
       }},
      {"attention",
       [&] {
         attention(i({1, 1, 2, 2}), i({1, 1, 2, 2}), i({1, 1, 2, 2}), 1);
       }},
      {"add", [&] { add(i({2}), i({2})); }},
      {"mul", [&] { mul(i({2}), i({2})); }},
      {"layer_norm",
       [&] {
         layer_norm(i({2, 4}), {}, {}, 1e-6);
       }},
      {"rms_norm",
       [&] {
         rms_norm(i({2, 4}), {}, 1e-6);
       }},
      {"linear",
       [&] {
         linear(i({2, 4}), f({3, 4}), {});
       }},
      {"matmul",
       [&] {
         matmul(i({2, 4}), i({4, 3}));
       }},
      {"residual_add",
       [&] {
         residual_add(i({2, 4}), i({2, 4}));
       }},
      {"rotary",
       [&] {
         rotary(i({1, 2, 12}), f({1, 1, 2, 4}), 1, RotaryPairs::halves);
       }},
      {"rotary_table",
       [&] {
         rotary_table(i({2, 4}));
       }},
      {"softmax",
       [&] {
         softmax(i({2, 4}));
       }},
      {"mean",
       [&] {
         mean(i({2, 4}), 0);
       }},
      {"unfold_3x3",
       [&] {
         unfold_3x3(i({1, 2, 2, 1}));
       }},
      {"depthwise_conv_3x3",
       [&] {
         depthwise_conv_3x3(i({1, 2, 2, 1}), f({1, 3, 3}), f({1}));
       }},
      {"pixel_shuffle",
       [&] {
         pixel_shuffle(i({1, 2, 2, 4}), 2);
       }},
      {"resize_bilinear",
       [&] {
         resize_bilinear(i({2, 2}), 3, 3);
       }},
      {"window_partition",
       [&] {
         window_partition(i({1, 2, 2, 1}), 2);
       }},
      {"window_unpartition",
       [&] {
         window_unpartition(i({1, 4, 1}), 2, 2, 2);
       }},
      {"relative_self_attention",
       [&] {
         relative_self_attention(i({1, 2, 12}), 1, 1, f({1, 4}), f({3, 4}), {1, 2});
       }},
      {"cross_entropy",
       [&] {
         cross_entropy(i({2, 3}), i({2}));
       }},
      {"bce_with_logits",
       [&] {
         bce_with_logits(i({2, 3}), i({2}));
       }},
      {"distillation",
       [&] {
         distillation(i({2, 3}), i({2, 3}));
       }},
      {"weighted_sum", [&] { weighted_sum({i({})}, {1}); }},
      {"focal_loss",
       [&] {
         focal_loss(i({1, 1, 2}), f({1, 2}));
       }},
      {"dice_loss", [&] {
         dice_loss(i({1, 1, 2}), f({1, 2}));
       }}};
  for (const auto& [name, call] : calls) {
    EXPECT_EQ(error_of([&, &action = call] { action(); }), str(name, ": expected a floating tensor, got i64"));
  }
}

TEST(Operations, ErrorsSayWhatShapesTheyNeed) {
  const auto f = [](const Shape& shape) { return Tensor::zeros(shape); };
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"silu_gate: expected an even last extent, got [2, 3]",
       [&] {
         silu_gate(f({2, 3}));
       }},
      {"layer_norm: expected x [..., C], got a scalar", [&] { layer_norm(f({}), {}, {}, 1e-6); }},
      {"layer_norm: expected parameters of shape [4] for x [2, 4], got [5]",
       [&] {
         layer_norm(f({2, 4}), {}, f({5}), 1e-6);
       }},
      {"rms_norm: expected x [..., C], got a scalar", [&] { rms_norm(f({}), {}, 1e-6); }},
      {"rms_norm: expected gamma [4] for x [2, 4], got [5]",
       [&] {
         rms_norm(f({2, 4}), f({5}), 1e-6);
       }},
      {"linear: expected a weight [out, in], got shape [3]",
       [&] {
         linear(f({2, 3}), f({3}), {});
       }},
      {"linear: expected a bias [4], got shape [3]",
       [&] {
         linear(f({2, 3}), f({4, 3}), f({3}));
       }},
      {"matmul: expected [..., m, k] and [..., k, n], got [2, 3] and [2, 3]",
       [&] {
         matmul(f({2, 3}), f({2, 3}));
       }},
      {"patchify: expected a patch of at least 1×1, got 0×4",
       [&] {
         patchify(f({1, 3, 8, 8}), 0, 4);
       }},
      {"patchify: expected an image [B, C, H, W] of at least 4×9, got [1, 3, 8, 8]",
       [&] {
         patchify(f({1, 3, 8, 8}), 4, 9);
       }},
      {"rotary: expected qkv [B, N, 3·5·d], got [2, 3, 24]",
       [&] {
         rotary(f({2, 3, 24}), f({1, 1, 3, 4}), 5, RotaryPairs::halves);
       }},
      {"rotary: expected a table [B or 1, H or 1, P, d] of an even d, for qkv [2, 3, 24] of 2 heads, got [1, 1, 4, 4]",
       [&] {
         rotary(f({2, 3, 24}), f({1, 1, 4, 4}), 2, RotaryPairs::halves);
       }},
      {"rotary_table: expected angles [..., d/2], got a scalar", [&] { rotary_table(f({})); }},
      {"cat: expected at least one tensor, got none", [&] { cat({}, 0); }},
      {"cat: expected an axis of [2, 3], got 2",
       [&] {
         cat({f({2, 3})}, 2);
       }},
      {"cat: expected shapes that agree but for axis 0, got [2, 3] and [2, 4]",
       [&] {
         cat({f({2, 3}), f({2, 4})}, 0);
       }},
      {"mean: expected an axis of [2, 3], got -3",
       [&] {
         mean(f({2, 3}), -3);
       }},
      {"gather_tokens: expected x [1, N, C], got [2, 3, 4]",
       [&] {
         gather_tokens(f({2, 3, 4}), {{0}});
       }},
      {"gather_tokens: expected 2 tokens of each sample, got 1",
       [&] {
         gather_tokens(f({2, 3, 4}), {{0, 1}, {0}});
       }},
      {"unfold_3x3: expected a map [B, h, w, C], got [2, 2, 1]",
       [&] {
         unfold_3x3(f({2, 2, 1}));
       }},
      {"unfold_3x3: expected a stride of 1 or more, got 0",
       [&] {
         unfold_3x3(f({1, 2, 2, 1}), 0);
       }},
      {"depthwise_conv_3x3: expected a stride of 1 or more, got -1",
       [&] {
         depthwise_conv_3x3(f({1, 2, 2, 1}), f({1, 3, 3}), f({1}), -1);
       }},
      {"depthwise_conv_3x3: expected a weight [1, 3, 3] and a bias [1], got [2, 3, 3] and [3]",
       [&] {
         depthwise_conv_3x3(f({1, 2, 2, 1}), f({2, 3, 3}), f({3}));
       }},
      {"pixel_shuffle: expected a map [B, h, w, C], got [2, 2, 4]",
       [&] {
         pixel_shuffle(f({2, 2, 4}), 2);
       }},
      {"pixel_shuffle: expected a number of channels that 2² divides, got [1, 1, 1, 6]",
       [&] {
         pixel_shuffle(f({1, 1, 1, 6}), 2);
       }},
      {"resize_bilinear: expected a map [..., h, w] and a target, all sizes at least 1, got [2, 3] to 0×5",
       [&] {
         resize_bilinear(f({2, 3}), 0, 5);
       }},
      {"window_partition: expected a map [B, h, w, C] and a window of at least 1, got [1, 2, 3, 2], 0",
       [&] {
         window_partition(f({1, 2, 3, 2}), 0);
       }},
      {"window_partition: expected a fill [2], got [3]",
       [&] {
         window_partition(f({1, 2, 3, 2}), 2, f({3}));
       }},
      {"window_unpartition: expected windows of 2×2 of a map of 2×3, got [3, 4, 1]",
       [&] {
         window_unpartition(f({3, 4, 1}), 2, 2, 3);
       }},
      {"relative_self_attention: expected qkv [B, 3·2, 3·2·d], got [1, 6, 16]",
       [&] {
         relative_self_attention(f({1, 6, 16}), 2, 1, f({5, 4}), f({3, 4}), {3, 2});
       }},
      {"relative_self_attention: expected tables [5, 4] and [3, 4], got [3, 4] and [5, 4]", [&] {
         relative_self_attention(f({1, 6, 12}), 1, 1, f({3, 4}), f({5, 4}), {3, 2});
       }}};
  for (const auto& [message, call] : calls) EXPECT_EQ(error_of([&, &action = call] { action(); }), message);
}

TEST(Matmul, OfMatricesWithoutColumnsIsEmpty) {
  EXPECT_EQ(matmul(Tensor::zeros({2, 3, 4}), Tensor::zeros({2, 4, 0})).shape(), (Shape{2, 3, 0}));
  const Tensor a = Tensor::from<double>({2, 3}, {1, 2, 3, 4, 5, 6}), b = Tensor::from<double>({3, 1}, {1, 10, 100});
  EXPECT_TRUE(testing::close(matmul(a, b), Tensor::from<double>({2, 1}, {321, 654}), 0));
  EXPECT_EQ(matmul(a.to(DType::bf16), b).dtype(), DType::bf16);
}

TEST(Rotary, OfSixteenBitAnglesHasTheirDtype) {
  const Tensor angles = Tensor::from<double>({1, 1, 2, 1}, {0.5, 2});
  for (const DType dtype : {DType::bf16, DType::f16}) EXPECT_EQ(rotary_table(angles.to(dtype)).dtype(), dtype);
  EXPECT_EQ(rotary_table(angles).shape(), (Shape{1, 1, 2, 2}));
}

}  // namespace
}  // namespace vitrail::ops
