// SPDX-License-Identifier: Apache-2.0
// Operations that are defined outside the library, in compiled programs.
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/operation.h"

namespace vitrail::infer {
namespace {

constexpr int64_t kDim = 8;

// (a − b, a + b), or a and a where b is undefined.
std::vector<Tensor> difference_and_sum(const Tensor& a, const Tensor& b) {
  ops::Operation operation{.name = "difference_and_sum", .shape = a.shape(), .further_results = {{a.shape()}}};
  operation.kernel = [](auto in, auto out) {
    for (int64_t i = 0; i < out[0].tensor->numel(); ++i) {
      out[0].data[i] = in[0].data[i] - (in[1].data ? in[1].data[i] : 0);
      out[1].data[i] = in[0].data[i] + (in[1].data ? in[1].data[i] : 0);
    }
  };
  return ops::apply_all(std::move(operation), {a, b});
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

}  // namespace
}  // namespace vitrail::infer
