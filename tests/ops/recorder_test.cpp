// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/recorder.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/patchify.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/rms_norm.h"
#include "vitrail/ops/rotary.h"
#include "vitrail/ops/token_merging.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::ops {
namespace {

Tensor meta(const Shape& shape) { return Tensor::empty(shape, DType::f32, Device::meta); }

TEST(Recorder, RecordsOperationsOnMetaTensors) {
  const Recorder recorder;
  const Tensor weight = Tensor::randn({6, 4}, 1), x = meta({2, 3, 4}), q = meta({2, 2, 5, 8}), k = meta({2, 2, 7, 8});
  linear(x, weight, {}, kernels::Activation::gelu);
  layer_norm(x, {}, {}, 1e-5);
  residual_add(x, x);
  attention(q, k, k, 0.25, Tensor::zeros({7}), true);
  patchify(meta({2, 3, 8, 12}), 4, 3);
  activation(x, kernels::Activation::relu);
  silu_gate(x);
  add(x, Tensor::zeros({1, 1, 4}));
  mul(Tensor::zeros({5, 2, 3, 4}), x);
  cat({Tensor::zeros({2, 1, 4}), x}, -2);
  mean(x, 1);
  contiguous(x.transpose(1, 2));
  rms_norm(x, Tensor::zeros({4}), 1e-5);
  rotary(meta({2, 3, 24}), Tensor::zeros({1, 1, 2, 4}), 2, RotaryPairs::interleaved);

  const std::vector<std::pair<OpKind, Shape>> expected{
      {OpKind::linear, {2, 3, 6}},     {OpKind::layer_norm, {2, 3, 4}}, {OpKind::residual_add, {2, 3, 4}},
      {OpKind::attention, {2, 5, 16}}, {OpKind::patchify, {2, 8, 36}},  {OpKind::activation, {2, 3, 4}},
      {OpKind::silu_gate, {2, 3, 2}},  {OpKind::add, {2, 3, 4}},        {OpKind::mul, {5, 2, 3, 4}},
      {OpKind::cat, {2, 4, 4}},        {OpKind::mean, {2, 4}},          {OpKind::copy, {2, 4, 3}},
      {OpKind::rms_norm, {2, 3, 4}},   {OpKind::rotary, {2, 3, 24}}};
  const std::vector<Operation>& operations = recorder.operations();
  ASSERT_EQ(operations.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(operations[i].kind, expected[i].first) << i << ": " << name_of(operations[i].kind);
    EXPECT_EQ(operations[i].outputs[0].shape(), expected[i].second) << name_of(operations[i].kind);
    EXPECT_TRUE(operations[i].outputs[0].is_meta());
  }
  EXPECT_EQ(operations[0].attributes.activation, kernels::Activation::gelu);
  EXPECT_EQ(operations[0].inputs[1].storage(), weight.storage()) << "weights have data";
  EXPECT_EQ(operations[1].attributes.eps, 1e-5);
  EXPECT_EQ(operations[3].attributes.scale, 0.25);
  EXPECT_EQ(operations[3].outputs[1].shape(), (Shape{2, 2, 5, 7}));
  EXPECT_EQ(operations[4].attributes.height, 4);
  EXPECT_EQ(operations[4].attributes.width, 3);
  EXPECT_EQ(operations[9].attributes.axis, 1);
  EXPECT_EQ(operations[13].attributes.heads, 2);
  EXPECT_EQ(operations[13].attributes.pairs, RotaryPairs::interleaved);
}

TEST(Recorder, OperationsOnTensorsWithDataRunAtOnce) {
  const Tensor w = Tensor::randn({4, 4}, 1);
  const Tensor expected = add(linear(w, w, {}), w);
  const Recorder recorder;
  const Tensor got = add(linear(w, w, {}), w);
  EXPECT_TRUE(testing::close(got, expected, 0));
  EXPECT_TRUE(recorder.operations().empty());
}

TEST(Recorder, ViewsAreNotRecordedAndShareTheirStorage) {
  const Recorder recorder;
  const Tensor qkv = linear(meta({2, 5, 8}), Tensor::zeros({24, 8}), {});
  const Tensor heads = qkv.view({2, 5, 3, 2, 4}).permute({2, 0, 3, 1, 4});
  attention(heads.select(0, 0), heads.select(0, 1), heads.select(0, 2), 1);
  ASSERT_EQ(recorder.operations().size(), 2u);
  const Operation &produce = recorder.operations()[0], &consume = recorder.operations()[1];
  for (int i = 0; i < 3; ++i) EXPECT_EQ(consume.inputs[i].storage(), produce.outputs[0].storage());
  EXPECT_EQ(consume.inputs[1].offset(), 8);
  EXPECT_EQ(consume.inputs[1].strides(), (Shape{120, 4, 24, 1}));
}

TEST(Recorder, MetaTensorsHaveShapesWithoutARecorder) {
  EXPECT_EQ(linear(meta({2, 4}), Tensor::zeros({3, 4}), {}).shape(), (Shape{2, 3}));
  const Recorder recorder;
  EXPECT_TRUE(recorder.operations().empty());
}

TEST(Recorder, ChecksShapesAsAComputation) {
  const Recorder recorder;
  EXPECT_THROW(linear(meta({2, 4}), Tensor::zeros({3, 5}), {}), Error);
  EXPECT_THROW(attention(meta({1, 2, 3, 4}), meta({1, 2, 3, 4}), meta({1, 2, 3, 4}), 1, Tensor::zeros({2, 2})), Error);
  EXPECT_THROW(cat({meta({2, 3}), meta({3, 3})}, 1), Error);
  EXPECT_THROW(residual_add(meta({2, 3}), meta({2, 3}), {}, Tensor::zeros({2}, DType::f64)), Error);
  EXPECT_TRUE(recorder.operations().empty());
}

TEST(Recorder, DoesNotNest) {
  const Recorder recorder;
  EXPECT_THROW(Recorder(), Error);
  add(meta({1}), meta({1}));
  EXPECT_EQ(recorder.operations().size(), 1u) << "the first continues to record";
}

// Two operations for each multiplication and its addition.
TEST(Recorder, CountsTheFlopsOfProducts) {
  const Recorder recorder;
  linear(meta({2, 3, 4}), Tensor::zeros({6, 4}), {});
  attention(meta({2, 3, 5, 8}), meta({2, 3, 7, 8}), meta({2, 3, 7, 8}), 1);
  add(meta({2, 3}), meta({3}));
  matmul(meta({2, 3, 4}), meta({2, 4, 5}));
  merge_tokens(meta({2, 11, 6}), meta({2, 3, 11, 8}), {}, 2, 1);
  depthwise_conv_3x3(meta({2, 4, 5, 3}), Tensor::zeros({3, 3, 3}), Tensor::zeros({3}));
  const double want[] = {2.0 * 2 * 3 * 4 * 6, 2 * (2.0 * 2 * 3 * 5 * 7 * 8), 0,
                         2.0 * 2 * 3 * 4 * 5, 2.0 * 2 * 5.5 * 5.5 * 8,       2.0 * 9 * 2 * 4 * 5 * 3};
  std::vector<double> got;
  for (const Operation& operation : recorder.operations()) {
    if (operation.kind != OpKind::copy) got.push_back(flops_of(operation));
  }
  ASSERT_EQ(got.size(), 6u);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(got[i], want[i]) << i;
  EXPECT_EQ(flops_of(recorder.operations()), want[0] + want[1] + want[3] + want[4] + want[5]);
}

TEST(Recorder, TokenRolesAreThoseOfTensorsWithoutData) {
  const Recorder recorder;
  const Tensor x = meta({1, 2, 3});
  annotate_tokens(x, {.class_token = true, .head_tokens = 1});
  annotate_tokens(Tensor::zeros({1, 2, 3}), {.class_token = true, .head_tokens = 1});
  ASSERT_EQ(recorder.token_roles().size(), 1u);
  EXPECT_TRUE(recorder.token_roles().at(x.storage().get()).class_token);
}

TEST(Recorder, EndsWithItsLifetime) {
  { const Recorder first; }
  add(meta({1}), meta({1}));
  const Recorder second;
  EXPECT_TRUE(second.operations().empty());
}

}  // namespace
}  // namespace vitrail::ops
