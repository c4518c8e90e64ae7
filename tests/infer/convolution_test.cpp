// SPDX-License-Identifier: Apache-2.0
// 3×3 convolutions in compiled programs: one step, which unfolds a few rows at a time.
#include "vitrail/nn/convolution.h"

#include <gtest/gtest.h>

#include "tests/infer/meta.h"
#include "tests/support/golden.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/infer/rewrite_internal.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/residual_add.h"

namespace vitrail::infer {
namespace {

using kernels::Activation;
using kernels::Precision;
using ops::OpKind;

struct ConvolutionCase {
  Shape map;
  int64_t out, stride;
  Activation activation;
  bool residual;
};

// Those with 16 channels or more and stride 1 are computed by Winograd's algorithm in fp32, the others by unfolding.
// The last four are computed in two parts, the last two in two parts of a batch.
const ConvolutionCase kConvolutions[] = {
    {{1, 1, 1, 16}, 16, 1, Activation::relu, true},     {{2, 5, 8, 19}, 37, 1, Activation::gelu, false},
    {{2, 2, 3, 24}, 16, 1, Activation::none, true},     {{1, 1, 1, 3}, 4, 1, Activation::none, false},
    {{1, 5, 7, 6}, 9, 1, Activation::relu, false},      {{2, 6, 5, 8}, 3, 2, Activation::none, true},
    {{2, 4, 1, 5}, 5, 1, Activation::none, true},       {{1, 301, 203, 1}, 2, 1, Activation::relu, true},
    {{1, 121, 115, 16}, 16, 1, Activation::none, true}, {{2, 40, 41, 40}, 3, 2, Activation::none, false},
    {{2, 85, 80, 16}, 18, 1, Activation::none, true},
};

nn::Conv2d convolution_of(const ConvolutionCase& each) {
  RandomParams random(3);
  return {nn::Conv2dConfig{.in_chans = each.map[3], .out_chans = each.out, .kernel = 3, .stride = each.stride},
          ParamSource(random)};
}

Tensor compute(const nn::Conv2d& convolution, const ConvolutionCase& each, const NamedTensors& in) {
  const Tensor y = convolution.forward(in[0].tensor, each.residual ? Activation::none : each.activation);
  return each.residual ? ops::residual_add(in[1].tensor, y) : y;
}

NamedTensors inputs_of(const nn::Conv2d& convolution, const ConvolutionCase& each) {
  const Tensor map = Tensor::randn(each.map, 1);
  if (!each.residual) return {{"map", map}};
  return {{"map", map}, {"residual", Tensor::randn(convolution.forward(map).shape(), 2)}};
}

// Other orders of sums of at most 360 products of numbers below 10: some 1e-5.  In 16 and 8 bits, other roundings of
// the same operands.
TEST(CompiledConvolution, GivesTheEagerResult) {
  for (const ConvolutionCase& each : kConvolutions) {
    for (const auto& [precision, tolerance] :
         {std::pair{Precision::fp32, 1e-5}, std::pair{Precision::half, 3e-2}, std::pair{Precision::int8, 1e-1}}) {
      nn::Conv2d convolution = convolution_of(each);
      const NamedTensors inputs = inputs_of(convolution, each);
      const Tensor want = compute(convolution, each, inputs);
      const FunctionSession session(convolution,
                                    [&](const NamedTensors& in) -> NamedTensors {
                                      return {{"y", compute(convolution, each, in)}};
                                    },
                                    {.precision = precision});
      EXPECT_TRUE(testing::close(session.run(inputs)[0].tensor, want, tolerance))
          << each.map << " in " << name_of(precision);
      EXPECT_EQ(session.listing(inputs).find("unfold"), std::string::npos) << session.listing(inputs);
    }
  }
}

TEST(CompiledConvolution, IsNotMadeOfNeighbourhoodsThatOthersRead) {
  const ops::Recorder recorder;
  const Tensor map = meta({1, 4, 4, 2}), weight = Tensor::randn({3, 18}, 1);
  const Tensor patches = ops::unfold_3x3(map), kept = ops::unfold_3x3(map);
  const std::vector<Tensor> outputs{ops::linear(patches, weight, {}), ops::linear(kept, weight, {}), kept};
  std::vector<int64_t> strides;
  std::vector<OpKind> kinds;
  for (const FusedOperation& item : rewrite(recorder.operations(), outputs)) {
    kinds.push_back(item.op.kind());
    strides.push_back(item.unfold_stride);
  }
  EXPECT_EQ(kinds, (std::vector<OpKind>{OpKind::unfold, OpKind::linear, OpKind::linear}));
  EXPECT_EQ(strides, (std::vector<int64_t>{0, 1, 0}));
}

}  // namespace
}  // namespace vitrail::infer
