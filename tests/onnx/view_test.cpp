// SPDX-License-Identifier: Apache-2.0
// Views as operators: the steps, computed on tensors, give the elements of the view.
#include "vitrail/onnx/view_internal.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/messages.h"
#include "vitrail/base/error.h"

namespace vitrail::onnx {
namespace {

Tensor numbered(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::from<float>(shape, values);
}

std::vector<float> elements(const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  return {dense.data<float>(), dense.data<float>() + dense.numel()};
}

Tensor transposed(const Tensor& x, const Ints& order) {
  Shape shape, strides;
  for (const int64_t axis : order) {
    shape.push_back(x.shape()[static_cast<int>(axis)]);
    strides.push_back(x.strides()[static_cast<int>(axis)]);
  }
  return {x.storage(), x.dtype(), shape, strides, x.offset()};
}

// What the operators compute.
Tensor computed(const ViewSteps& steps, const Tensor& buffer) {
  Tensor x = buffer.reshape(Shape(steps.digits));
  for (size_t i = 0; i < steps.axes.size(); ++i)
    x = x.narrow(static_cast<int>(steps.axes[i]), steps.starts[i], steps.ends[i] - steps.starts[i]);
  x = transposed(x, steps.order).contiguous().reshape(Shape(steps.shape));
  if (steps.expanded.empty()) return x;
  return x.expand(broadcast_shapes(x.shape(), Shape(steps.expanded), "expand"));
}

void expect_steps(const Tensor& buffer, const Tensor& view) {
  const Tensor result = computed(steps_of(view), buffer);
  EXPECT_EQ(result.shape(), view.shape());
  EXPECT_EQ(elements(result), elements(view));
}

constexpr int64_t kBatch = kRecordedBatch;

TEST(OnnxView, HeadsOfAFusedProjection) {
  const Tensor qkv = numbered({kBatch, 5, 3 * 2 * 4});
  for (int part = 0; part < 3; ++part) {
    const Tensor heads = qkv.view({kBatch, 5, 3, 2, 4}).permute({2, 0, 3, 1, 4}).select(0, part);
    expect_steps(qkv, heads);
    expect_steps(qkv, heads.transpose(2, 3));
    expect_steps(qkv, heads.narrow(2, 1, 2));
  }
}

TEST(OnnxView, TokensAndRangesOfThem) {
  const Tensor tokens = numbered({kBatch, 7, 6});
  expect_steps(tokens, tokens.select(1, 0));
  expect_steps(tokens, tokens.select(1, 6));
  expect_steps(tokens, tokens.narrow(1, 2, 4));
  expect_steps(tokens, tokens.select(2, 3));
  expect_steps(tokens, tokens.narrow(2, 1, 3).narrow(1, 6, 1));
}

TEST(OnnxView, MergedAndSplitAxes) {
  const Tensor tokens = numbered({kBatch, 6, 4});
  expect_steps(tokens, tokens.view({kBatch * 6, 4}).narrow(1, 1, 2));
  expect_steps(tokens, tokens.view({kBatch, 2, 3, 4}).permute({0, 2, 1, 3}));
  expect_steps(tokens, tokens.permute({2, 1, 0}));
}

TEST(OnnxView, RepeatedAxesAreExpanded) {
  const Tensor tokens = numbered({kBatch, 1, 4});
  expect_steps(tokens, tokens.expand({kBatch, 5, 4}));
}

TEST(OnnxView, PartOfTheBatchIsRefused) {
  const Tensor tokens = numbered({kBatch, 6, 4});
  EXPECT_THROW(steps_of(tokens.narrow(0, 0, 2)), Error);
  EXPECT_THROW(steps_of(tokens.select(0, 1)), Error);
}

// The number of tokens differs between the recorded pass and a call.
TEST(OnnxView, OneTokenIsTakenFromAnyNumberOfTokens) {
  constexpr int64_t kWidth = 4;
  const Tensor recorded = numbered({1, 6, kWidth}), longer = numbered({1, 11, kWidth});
  for (const int64_t token : {0, 3, 5}) {
    const ViewSteps steps = steps_of(recorded.narrow(1, token, 1), kWidth);
    EXPECT_EQ(elements(computed(steps, longer)), elements(longer.narrow(1, token, 1)));
  }
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 2}, {2, 2}, {1, 3}})
    EXPECT_THROW(steps_of(recorded.narrow(1, first, count), kWidth), Error);
}

TEST(OnnxView, OverlappingViewIsRefused) {
  const Tensor tokens = numbered({kBatch, 6, 4});
  EXPECT_THROW(steps_of(Tensor(tokens.storage(), DType::f32, {kBatch, 5, 8}, {24, 4, 1}, 0)), Error);
}

}  // namespace
}  // namespace vitrail::onnx
