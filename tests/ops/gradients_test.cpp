// SPDX-License-Identifier: Apache-2.0
// The backward of every operation: f64 against central differences, f32 against f64.  tests/autograd also compares
// linear, layer_norm and residual_add with PyTorch's autograd.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ops/inputs.h"
#include "tests/support/golden.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/max_pool.h"
#include "vitrail/ops/patchify.h"
#include "vitrail/ops/relative_attention.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/rms_norm.h"
#include "vitrail/ops/rotary.h"
#include "vitrail/ops/softmax.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/ops/window.h"

namespace vitrail::ops {
namespace {

using In = const std::vector<Tensor>&;
using Function = std::function<Tensor(In)>;
using kernels::Activation;

constexpr Activation kActivations[] = {Activation::none,       Activation::gelu, Activation::gelu_tanh,
                                       Activation::quick_gelu, Activation::relu, Activation::silu,
                                       Activation::tanh};

// The error of a central difference is about 1e-10; tests/autograd/gradients_test.cpp derives it.
void expect_correct_gradients(const Function& function, In inputs) {
  const autograd::GradientCheck check = autograd::check_gradients(function, inputs);
  EXPECT_LT(check.worst, 1e-8) << "input " << check.input << ", element " << check.element << ": numerical "
                               << check.numerical << ", analytic " << check.analytic;
}

// The rounding errors of 2^-24 of `terms` summands of order 1 grow as a random walk, √terms; the tolerance is 8 times
// that.
void expect_float_agrees(const Function& function, In inputs, double terms) {
  const std::vector<Tensor> exact = gradients_of(function, inputs, DType::f64);
  const std::vector<Tensor> single = gradients_of(function, inputs, DType::f32);
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_EQ(single[i].dtype(), DType::f32);
    double largest = 1;
    for (int64_t e = 0; e < exact[i].numel(); ++e) largest = std::max(largest, std::abs(exact[i].data<double>()[e]));
    EXPECT_TRUE(testing::close(single[i], exact[i], 8 * std::sqrt(terms) * std::pow(2, -24) * largest))
        << "input " << i;
  }
}

TEST(Gradient, OfAddAndMulWithBroadcasting) {
  const std::vector<std::pair<Shape, Shape>> shapes{{{2, 3, 4}, {2, 3, 4}}, {{2, 3, 4}, {1, 3, 4}}, {{2, 3, 4}, {4}},
                                                    {{2, 3, 4}, {2, 1, 4}}, {{3, 1}, {1, 4}},       {{2, 3}, {1}}};
  for (const auto& [left, right] : shapes) {
    const std::vector<Tensor> inputs{draw(left, 1), draw(right, 2)};
    for (const Function& f :
         {Function([](In in) { return add(in[0], in[1]); }), Function([](In in) { return mul(in[0], in[1]); }),
          Function([](In in) { return mul(in[1], in[0]); })}) {
      expect_correct_gradients(f, inputs);
      expect_float_agrees(f, inputs, 12);
    }
  }
}

TEST(Gradient, OfActivations) {
  for (const Activation kind : kActivations) {
    const Function f = [kind](In in) { return activation(in[0], kind); };
    expect_correct_gradients(f, {draw({3, 5}, 1)});
    expect_float_agrees(f, {draw({37, 29}, 1)}, 16);
  }
}

// bf16 keeps 8 bits, so that values and derivatives of order 1 are right to a few 2^-8.
TEST(Gradient, OfActivationsInBfloat16) {
  for (const Activation kind : kActivations) {
    const Function f = [kind](In in) { return activation(in[0], kind); };
    const std::vector<Tensor> inputs{draw({7, 9}, 1).to(DType::bf16).to(DType::f64)};
    const Tensor half = gradients_of(f, inputs, DType::bf16)[0], exact = gradients_of(f, inputs, DType::f64)[0];
    EXPECT_EQ(half.dtype(), DType::bf16);
    EXPECT_TRUE(testing::close(half.to(DType::f64), exact, 8 * std::pow(2, -8)));
  }
}

TEST(Gradient, OfLinearWithActivationInFloat) {
  for (const Activation kind : kActivations) {
    expect_float_agrees([kind](In in) { return linear(in[0], in[1], in[2], kind); },
                        {draw({3, 67, 19}, 1), draw({33, 19}, 2), draw({33}, 3)}, 201 * 4);
  }
}

TEST(Gradient, OfSiluGate) {
  const Function f = [](In in) { return silu_gate(in[0]); };
  expect_correct_gradients(f, {draw({3, 10}, 1)});
  expect_float_agrees(f, {draw({37, 58}, 1)}, 16);
}

TEST(Gradient, OfRotary) {
  for (const RotaryPairs pairs : {RotaryPairs::halves, RotaryPairs::interleaved}) {
    for (const Shape& angles : {Shape{1, 1, 2, 2}, Shape{1, 2, 2, 2}, Shape{2, 1, 2, 2}, Shape{2, 2, 3, 2}}) {
      const Function f = [pairs](In in) { return rotary(in[0], rotary_table(in[1]), 2, pairs); };
      expect_correct_gradients(f, {draw({2, 3, 24}, 1), draw(angles, 2)});
      expect_float_agrees(f, {draw({2, 3, 24}, 1), draw(angles, 2)}, 24);
    }
  }
}

TEST(Gradient, OfLayerNormInFloat) {
  for (const int64_t cols : {1, 7, 8, 9, 64, 193}) {
    expect_float_agrees([](In in) { return layer_norm(in[0], in[1], in[2], 1e-2); },
                        {draw({3, 67, cols}, 1), draw({cols}, 2), draw({cols}, 3)}, 201 * 4);
  }
}

TEST(Gradient, OfRmsNorm) {
  const Function f = [](In in) { return rms_norm(in[0], in[1], 1e-2); };
  expect_correct_gradients(f, {draw({3, 5}, 1), draw({5}, 2)});
  expect_correct_gradients([](In in) { return rms_norm(in[0], {}, 1e-2); }, {draw({3, 5}, 1)});
  for (const int64_t cols : {1, 7, 64, 193}) expect_float_agrees(f, {draw({3, 67, cols}, 1), draw({cols}, 2)}, 201 * 4);
}

TEST(Gradient, OfResidualAdd) {
  const Tensor keep = Tensor::from<double>({3}, {0, 1.25, 1.25});
  for (const Tensor& factors : {Tensor(), keep}) {
    expect_correct_gradients([&](In in) { return residual_add(in[0], in[1], in[2], factors); },
                             {draw({3, 2, 4}, 1), draw({3, 2, 4}, 2), draw({4}, 3)});
    expect_float_agrees([&](In in) { return residual_add(in[0], in[1], in[2], factors); },
                        {draw({3, 67, 19}, 1), draw({3, 67, 19}, 2), draw({19}, 3)}, 201 * 4);
    expect_float_agrees([&](In in) { return residual_add(in[0], in[1], {}, factors); },
                        {draw({3, 67, 19}, 1), draw({3, 67, 19}, 2)}, 4);
  }
}

TEST(Gradient, OfMatmulAndSoftmax) {
  const Function multiply = [](In in) { return matmul(in[0], in[1]); };
  expect_correct_gradients(multiply, {draw({2, 3, 4}, 1), draw({2, 4, 5}, 2)});
  expect_float_agrees(multiply, {draw({2, 17, 9}, 1), draw({2, 9, 21}, 2)}, 21);
  const Function row_softmax = [](In in) { return softmax(in[0]); };
  expect_correct_gradients(row_softmax, {draw({3, 5}, 1)});
  expect_float_agrees(row_softmax, {draw({13, 37}, 1)}, 37);
}

TEST(Gradient, OfTokens) {
  expect_correct_gradients(
      [](In in) {
        return cat({in[0], in[1], in[0]}, 1);
      },
      {draw({2, 1, 3}, 1), draw({2, 4, 3}, 2)});
  for (const int axis : {0, 1, 2}) {
    const Function f = [axis](In in) { return mean(in[0], axis); };
    expect_correct_gradients(f, {draw({2, 4, 3}, 1)});
    expect_float_agrees(f, {draw({2, 4, 3}, 1)}, 4);
  }
  expect_correct_gradients([](In in) { return contiguous(in[0].transpose(0, 2)); }, {draw({2, 4, 3}, 1)});
  expect_correct_gradients([](In in) { return gather_tokens(in[0], {{0, 3}, {2, 2}}); }, {draw({2, 4, 3}, 1)});
}

TEST(Gradient, OfPatchify) {
  const Function f = [](In in) { return patchify(in[0], 2, 3); };
  expect_correct_gradients(f, {draw({2, 3, 5, 6}, 1)});  // the last row of pixels is dropped: its gradient is 0
  expect_float_agrees(f, {draw({2, 3, 5, 6}, 1)}, 1);
}

TEST(Gradient, OfAttention) {
  const Tensor q = draw({2, 3, 4, 5}, 1), k = draw({2, 3, 6, 5}, 2), v = draw({2, 3, 6, 5}, 3);
  expect_correct_gradients([](In in) { return attention(in[0], in[1], in[2], 0.4).out; }, {q, k, v});
  expect_correct_gradients([](In in) { return attention(in[0], in[1], in[2], 0.4, in[3]).out; },
                           {q, k, v, draw({3, 1, 6}, 4)});
}

// Sizes below, at and above the tile and panel sizes of every instruction set, and more queries than a block has.
TEST(Gradient, OfAttentionInFloat) {
  for (const auto& [queries, keys, dim] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {5, 7, 3}, {12, 16, 16}, {13, 65, 24}, {65, 65, 16}, {197, 197, 64}, {300, 170, 32}}) {
    const Function f = [dim = dim](In in) {
      return attention(in[0], in[1], in[2], 1 / std::sqrt(static_cast<double>(dim))).out;
    };
    expect_float_agrees(f, {draw({1, 2, queries, dim}, 1), draw({1, 2, keys, dim}, 2), draw({1, 2, keys, dim}, 3)},
                        4 * static_cast<double>(queries + keys + dim));
  }
}

TEST(Gradient, OfAttentionWithABiasInFloat) {
  for (const Shape& shape : {Shape{2, 3, 9, 11}, Shape{9, 11}, Shape{2, 1, 1, 11}}) {
    expect_float_agrees([](In in) { return attention(in[0], in[1], in[2], 0.5, in[3]).out; },
                        {draw({2, 3, 9, 4}, 1), draw({2, 3, 11, 4}, 2), draw({2, 3, 11, 4}, 3), draw(shape, 4)}, 200);
  }
}

TEST(Gradient, OfAMaskedQueryIsZero) {
  const double inf = std::numeric_limits<double>::infinity();
  Tensor mask = Tensor::zeros({2, 3}, DType::f64);
  for (int s = 0; s < 3; ++s) mask.data<double>()[3 + s] = -inf;
  for (const DType dtype : {DType::f64, DType::f32}) {
    const auto grads = gradients_of([&](In in) { return attention(in[0], in[1], in[2], 0.5, mask).out; },
                                    {draw({1, 1, 2, 4}, 1), draw({1, 1, 3, 4}, 2), draw({1, 1, 3, 4}, 3)}, dtype);
    EXPECT_TRUE(testing::close(grads[0].narrow(2, 1, 1), Tensor::zeros({1, 1, 1, 4}), 0)) << name_of(dtype);
    for (const Tensor& grad : grads) EXPECT_TRUE(std::isfinite(mean(grad.flatten(), 0).item<double>()));
  }
}

TEST(Gradient, OfSelfAttentionEqualsThatOfItsParts) {
  const Tensor qkv = draw({2, 17, 3 * 3 * 8}, 1);
  const Function fused = [](In in) { return self_attention(in[0], 3, 0.3); };
  const Function parts = [](In in) {
    const Tensor heads = in[0].view({2, 17, 3, 3, 8}).permute({2, 0, 3, 1, 4});
    return attention(heads.select(0, 0), heads.select(0, 1), heads.select(0, 2), 0.3).out;
  };
  EXPECT_TRUE(testing::close(gradients_of(fused, {qkv}, DType::f32)[0], gradients_of(parts, {qkv}, DType::f32)[0], 0));
  expect_float_agrees(fused, {qkv}, 100);
  expect_correct_gradients([](In in) { return self_attention(in[0], 2, 0.3); }, {draw({2, 3, 12}, 1)});
}

TEST(Gradient, OfTheFirstQueriesEqualsThatOfTheirParts) {
  const Tensor qkv = draw({2, 17, 3 * 3 * 8}, 1);
  for (const int64_t count : {1, 2, 17}) {
    const Function fused = [count](In in) { return self_attention(in[0], 3, 0.3, count); };
    const Function parts = [count](In in) {
      const Tensor heads = in[0].view({2, 17, 3, 3, 8}).permute({2, 0, 3, 1, 4});
      return attention(heads.select(0, 0).narrow(2, 0, count), heads.select(0, 1), heads.select(0, 2), 0.3).out;
    };
    EXPECT_TRUE(
        testing::close(gradients_of(fused, {qkv}, DType::f32)[0], gradients_of(parts, {qkv}, DType::f32)[0], 0));
    expect_float_agrees(fused, {qkv}, 100);
  }
}

TEST(Gradient, OfRelativeSelfAttention) {
  const Function f = [](In in) { return relative_self_attention(in[0], 2, 0.4, in[1], in[2], {3, 2}); };
  const std::vector<Tensor> small{draw({2, 6, 3 * 2 * 3}, 1), draw({5, 3}, 2), draw({3, 3}, 3)};
  expect_correct_gradients(f, small);
  expect_float_agrees(f, small, 100);
  expect_float_agrees(
      [](In in) {
        return relative_self_attention(in[0], 3, 0.3, in[1], in[2], {5, 7});
      },
      {draw({2, 35, 3 * 3 * 9}, 1), draw({9, 9}, 2), draw({13, 9}, 3)}, 600);
  // A grid whose rows are computed in two parts and a remainder.
  expect_float_agrees(
      [](In in) {
        return relative_self_attention(in[0], 1, 0.3, in[1], in[2], {25, 30});
      },
      {draw({1, 750, 3 * 8}, 1), draw({49, 8}, 2), draw({59, 8}, 3)}, 6000);
}

TEST(Gradient, OfWindowPartitionAndItsFill) {
  const std::vector<Tensor> inputs{draw({2, 3, 5, 4}, 1), draw({4}, 2)};
  const Function filled = [](In in) { return window_partition(in[0], 2, in[1]); };
  expect_correct_gradients(filled, inputs);
  expect_float_agrees(filled, inputs, 24);
  expect_correct_gradients([](In in) { return window_partition(in[0], 2); }, {inputs[0]});
  const Function back = [](In in) { return window_unpartition(in[0], 2, 3, 5); };
  expect_correct_gradients(back, {draw({12, 4, 3}, 1)});
  expect_float_agrees(back, {draw({12, 4, 3}, 1)}, 1);
}

TEST(Gradient, OfUnfoldPixelShuffleAndResize) {
  const std::vector<Tensor> map{draw({2, 3, 4, 8}, 1)};
  for (const Function& f :
       {Function([](In in) { return unfold_3x3(in[0]); }), Function([](In in) { return unfold_3x3(in[0], 2); }),
        Function([](In in) { return unfold_3x3_rows(in[0], 2, 1, 1); }), Function([](In in) {
          return unfold(in[0], {4, 3, 2});
        }),
        Function([](In in) { return max_pool_2x2(in[0]); }), Function([](In in) { return pixel_shuffle(in[0], 2); }),
        Function([](In in) { return resize_bilinear(in[0], 7, 3); }),
        Function([](In in) { return resize_map(in[0], 7, 3); }),
        Function([](In in) { return resize_map(in[0], 7, 3, Corners::aligned); })}) {
    expect_correct_gradients(f, map);
    expect_float_agrees(f, map, 36);
  }
}

TEST(Gradient, OfDepthwiseConvolution) {
  const std::vector<Tensor> inputs{draw({2, 4, 5, 3}, 1), draw({3, 3, 3}, 2), draw({3}, 3)};
  for (const int64_t stride : {1, 2, 3}) {
    const Function f = [stride](In in) { return depthwise_conv_3x3(in[0], in[1], in[2], stride); };
    expect_correct_gradients(f, inputs);
    expect_float_agrees(f, inputs, 60);
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

}  // namespace
}  // namespace vitrail::ops
