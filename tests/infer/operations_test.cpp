// SPDX-License-Identifier: Apache-2.0
// Every operation in a compiled program, on contiguous and on strided inputs, gives the eager result.
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/operations.h"
#include "vitrail/base/error.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/nn/linear.h"

namespace vitrail::infer {
namespace {

struct InputView {
  const char* name;
  Shape (*stored)(Shape shape);                       // the shape of the tensor in memory
  Tensor (*of)(const Tensor& x, const Shape& shape);  // its view of this shape
};
void PrintTo(const InputView& view, std::ostream* out) { *out << view.name; }

Shape exchanged(Shape shape, int a, int b) {
  std::swap(shape[a], shape[b]);
  return shape;
}

const InputView kViews[] = {
    {"Contiguous", [](Shape shape) { return shape; }, [](const Tensor& x, const Shape&) { return x; }},
    {"LastAxisFirst", [](Shape shape) { return exchanged(shape, 0, shape.rank() - 1); },
     [](const Tensor& x, const Shape&) { return x.transpose(0, x.rank() - 1); }},
    {"RowsOfSamplesExchanged", [](Shape shape) { return exchanged(shape, 0, 1); },
     [](const Tensor& x, const Shape&) { return x.transpose(0, 1); }},
    {"PartOfTheColumns",
     [](Shape shape) {
       shape[shape.rank() - 1] += 3;
       return shape;
     },
     [](const Tensor& x, const Shape& shape) { return x.narrow(-1, 2, shape.back()); }},
    {"PartOfTheRows",
     [](Shape shape) {
       shape[1] += 2;
       return shape;
     },
     [](const Tensor& x, const Shape& shape) { return x.narrow(1, 1, shape[1]); }},
};

class CompiledOperation : public ::testing::TestWithParam<std::tuple<testing::OperationCase, InputView>> {};

// Sums of some products of numbers below 10, in another order: some 1e-6.
TEST_P(CompiledOperation, GivesTheEagerResult) {
  const auto& [each, view] = GetParam();
  if (!each.compiled) return;
  const Tensor x = Tensor::randn(view.stored(each.shapes[0]), 9);
  std::vector<Tensor> inputs = testing::inputs_of(each);
  const auto run = [&, &each = each, &view = view](const Tensor& stored) {
    inputs[0] = view.of(stored, each.shapes[0]);
    return ops::contiguous(each.run(inputs));
  };
  const Tensor want = run(x);  // before the session packs weights
  RandomParams random(1);
  nn::Linear unused(1, 1, true, ParamSource(random));
  const FunctionSession session(unused, [&](const NamedTensors& in) -> NamedTensors {
    return {{"y", run(in[0].tensor)}};
  });
  EXPECT_TRUE(testing::close(session.run({{"x", x}})[0].tensor, want, 1e-5)) << session.listing({{"x", x}});
}

INSTANTIATE_TEST_SUITE_P(Operations, CompiledOperation,
                         ::testing::Combine(::testing::ValuesIn(testing::operation_cases()),
                                            ::testing::ValuesIn(kViews)),
                         [](const auto& info) {
                           return str(std::get<0>(info.param).name, "_", std::get<1>(info.param).name, "_", info.index);
                         });

}  // namespace
}  // namespace vitrail::infer
