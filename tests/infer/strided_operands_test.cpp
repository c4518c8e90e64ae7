// SPDX-License-Identifier: Apache-2.0
// Operations on strided views of an earlier result: a compiled program computes what the eager operations do.
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/patchify.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/rms_norm.h"
#include "vitrail/ops/rotary.h"
#include "vitrail/ops/token_merging.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::infer {
namespace {

struct View {
  const char* name;
  Tensor (*of)(const Tensor& x);  // x [4, 4, 8] → [.., 4, 4]
};
void PrintTo(const View& view, std::ostream* out) { *out << view.name; }
const View kViews[] = {
    {"LastColumns", [](const Tensor& x) { return x.narrow(2, 4, 4); }},
    {"RowsOfEachSample",
     [](const Tensor& x) {
       return x.narrow(1, 1, 2).narrow(2, 0, 4).view({4, 2, 4});
     }},
    {"Transposed", [](const Tensor& x) { return x.narrow(2, 2, 4).transpose(1, 2); }},
    {"SamplesLast",
     [](const Tensor& x) {
       return x.permute({1, 2, 0});
     }},
    {"SamplesAndRowsExchanged", [](const Tensor& x) { return x.narrow(2, 0, 4).transpose(0, 1); }},
    {"OneColumn",
     [](const Tensor& x) {
       return x.narrow(2, 3, 1).permute({2, 0, 1});
     }},
};

struct StridedCase {
  const char* name;
  Tensor (*run)(const Tensor& view);  // a view [B, N, C]
};
void PrintTo(const StridedCase& each, std::ostream* out) { *out << each.name; }
const StridedCase kStridedCases[] = {
    {"Linear",
     [](const Tensor& x) {
       return ops::linear(x, Tensor::randn({5, x.size(2)}, 7), {});
     }},
    {"LayerNorm", [](const Tensor& x) { return ops::layer_norm(x, {}, {}, 1e-5); }},
    {"RmsNorm", [](const Tensor& x) { return ops::rms_norm(x, {}, 1e-5); }},
    {"ResidualAdd", [](const Tensor& x) { return ops::residual_add(x, x, {}); }},
    {"Activation", [](const Tensor& x) { return ops::activation(x, kernels::Activation::gelu); }},
    {"SiluGate", [](const Tensor& x) { return ops::silu_gate(x); }},
    {"Patchify", [](const Tensor& x) { return ops::patchify(x.unsqueeze(0), 1, 2); }},
    {"Attention",
     [](const Tensor& x) {
       const Tensor heads = x.unsqueeze(0);
       return ops::attention(heads, heads, heads, 0.5).out;
     }},
    {"MeanOfSamples", [](const Tensor& x) { return ops::mean(x, 0); }},
    {"MeanOfRows", [](const Tensor& x) { return ops::mean(x, 1); }},
    {"MeanOfColumns", [](const Tensor& x) { return ops::mean(x, 2); }},
    {"Cat",
     [](const Tensor& x) {
       return ops::cat({x, x}, 1);
     }},
    {"Add", [](const Tensor& x) { return ops::add(x, x); }},
    {"Mul", [](const Tensor& x) { return ops::mul(x, x); }},
    {"Contiguous", [](const Tensor& x) { return ops::contiguous(x); }},
    {"MergeTokens",
     [](const Tensor& x) { return ops::merge_tokens(x, x.unsqueeze(1), ops::mean(ops::mul(x, x), 2), 1, 0).x; }},
};

class StridedOperand : public ::testing::TestWithParam<std::tuple<StridedCase, View>> {};

// Sums of at most 8 products of numbers below 10, in another order: some 1e-6.
TEST_P(StridedOperand, GivesTheEagerResult) {
  const auto& [operation, view] = GetParam();
  RandomParams random(1);
  nn::Linear before(8, 8, true, ParamSource(random));
  const Tensor x = Tensor::randn({4, 4, 8}, 2);
  const auto function = [run = operation.run, of = view.of, &before](const Tensor& input) {
    return run(of(before.forward(input)));
  };
  const Tensor want = function(x);  // before the session packs the weights
  const FunctionSession session(before, [&](const NamedTensors& inputs) -> NamedTensors {
    return {{"y", function(inputs[0].tensor)}};
  });
  EXPECT_TRUE(testing::close(session.run({{"x", x}})[0].tensor, want, 1e-5)) << session.listing({{"x", x}});
}

INSTANTIATE_TEST_SUITE_P(Operations, StridedOperand,
                         ::testing::Combine(::testing::ValuesIn(kStridedCases), ::testing::ValuesIn(kViews)),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param).name) + "_" + std::get<1>(each.param).name;
                         });

}  // namespace
}  // namespace vitrail::infer
