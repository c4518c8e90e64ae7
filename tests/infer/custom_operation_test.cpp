// SPDX-License-Identifier: Apache-2.0
// Operations of kind custom, which are defined outside the library, in compiled programs.
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/recorder.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::infer {
namespace {

constexpr int64_t kDim = 8;

// (a − b, a + b), or a and a where b is undefined.
std::vector<Tensor> difference_and_sum(const Tensor& a, const Tensor& b) {
  const std::vector<Tensor> results{ops::symbolic_result(a.shape(), a.dtype()),
                                    ops::symbolic_result(a.shape(), a.dtype())};
  ops::CustomOperation step{.name = "difference_and_sum", .flops = 3};
  step.compute = [n = a.numel()](const float* const* in, float* const* out) {
    for (int64_t i = 0; i < n; ++i) {
      out[0][i] = in[0][i] - (in[1] ? in[1][i] : 0);
      out[1][i] = in[0][i] + (in[1] ? in[1][i] : 0);
    }
  };
  ops::record(ops::OpKind::custom, {a, b}, results,
              {.custom = std::make_shared<const ops::CustomOperation>(std::move(step))});
  return results;
}

class CustomOperation : public ::testing::Test {
 protected:
  RandomParams random_{1};
  nn::Linear linear_{kDim, kDim, true, ParamSource(random_)};
  const Tensor x_ = Tensor::randn({3, kDim}, 2);
  const Tensor hidden_ = linear_.forward(x_);
};

TEST_F(CustomOperation, ReadsResultsInputsAndConstantsAndWritesSeveralOutputs) {
  const Tensor constant = Tensor::randn({kDim, 3}, 3).transpose(0, 1);
  const FunctionSession session(linear_, [&](const NamedTensors& inputs) -> NamedTensors {
    const Tensor x = inputs[0].tensor;
    const auto first = difference_and_sum(linear_.forward(x), x), second = difference_and_sum(first[1], constant);
    return {{"difference", first[0]}, {"sum", second[1]}};
  });
  const NamedTensors got = session.run({{"x", x_}});
  for (int64_t i = 0; i < x_.numel(); ++i) {
    const float h = hidden_.data<float>()[i], x = x_.data<float>()[i];
    const float c = constant.contiguous().data<float>()[i];
    EXPECT_NEAR(got[0].tensor.data<float>()[i], h - x, 1e-5) << i;
    EXPECT_NEAR(got[1].tensor.data<float>()[i], h + x + c, 1e-5) << i;
  }
  EXPECT_NE(session.listing({{"x", x_}}).find("difference_and_sum %0 [3, 8] input [3, 8]"), std::string::npos)
      << session.listing({{"x", x_}});
}

TEST_F(CustomOperation, AnUndefinedInputIsNull) {
  const FunctionSession session(linear_, [&](const NamedTensors& inputs) -> NamedTensors {
    return {{"same", difference_and_sum(inputs[0].tensor, Tensor())[0]}};
  });
  EXPECT_TRUE(testing::close(session.run({{"x", x_}})[0].tensor, x_, 0));
}

TEST_F(CustomOperation, AStridedInputIsAnErrorThatNamesTheOperation) {
  const FunctionSession session(linear_, [&](const NamedTensors& inputs) -> NamedTensors {
    const Tensor x = inputs[0].tensor;
    return {{"sum", difference_and_sum(x.transpose(0, 1), x.transpose(0, 1))[1]}};
  });
  const std::string message = testing::error_of([&] { session.run({{"x", x_}}); });
  EXPECT_TRUE(testing::contains(message, "contiguous f32 tensors for difference_and_sum")) << message;
}

TEST(CustomOperationRecord, HasTheFlopsThatItStates) {
  const ops::Recorder recorder;
  difference_and_sum(ops::symbolic_result({2}, DType::f32), Tensor());
  ASSERT_EQ(recorder.operations().size(), 1u);
  EXPECT_EQ(ops::flops_of(recorder.operations()[0]), 3);
}

}  // namespace
}  // namespace vitrail::infer
