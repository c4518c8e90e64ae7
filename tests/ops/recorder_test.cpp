// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/recorder.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/token_merging.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::ops {
namespace {

Tensor meta(const Shape& shape, DType dtype = DType::f32) { return Tensor::empty(shape, dtype, Device::meta); }

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
  const RecordedOperation &produce = recorder.operations()[0], &consume = recorder.operations()[1];
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

TEST(Recorder, TokenRolesAreThoseOfTensorsWithoutData) {
  const Recorder recorder;
  const Tensor x = meta({1, 2, 3});
  annotate_tokens(x, {.class_token = true, .head_tokens = 1});
  annotate_tokens(Tensor::zeros({1, 2, 3}), {.class_token = true, .head_tokens = 1});
  ASSERT_EQ(recorder.token_roles().size(), 1u);
  EXPECT_TRUE(recorder.token_roles().at(x.storage().get()).class_token);
}

// An operation that no file of the library knows.
Operation negation(const Shape& shape) {
  return {.name = "negation",
          .shape = shape,
          .kernel =
              [](auto in, auto out) {
                for (int64_t i = 0; i < out[0].tensor->numel(); ++i) out[0].data[i] = -in[0].data[i];
              },
          .gradient =
              [](const Tensors& in, const Tensors&) {
                return backward_kernel(in, {}, [](auto from, auto grads) {
                  for (int64_t i = 0; i < grads[0].tensor->numel(); ++i) grads[0].data[i] = -from[0].data[i];
                });
              },
          .flops = 3};
}

TEST(Operation, IsComputedRecordedAndDifferentiatedByApply) {
  const Tensor x = Tensor::randn({2, 3}, 1, DType::f64);
  EXPECT_TRUE(testing::close(apply(negation(x.transpose(0, 1).shape()), {x.transpose(0, 1)}),
                             mul(x.transpose(0, 1), Tensor::full({1}, -1)), 0));
  Tensor leaf = x.to(DType::bf16).clone();
  autograd::set_requires_grad(leaf, true);
  const Tensor y = apply(negation(x.shape()), {leaf});
  EXPECT_EQ(y.dtype(), DType::bf16);
  autograd::backward(y, Tensor::full({2, 3}, 2, DType::bf16));
  EXPECT_TRUE(testing::close(autograd::grad_of(leaf).to(DType::f32), Tensor::full({2, 3}, -2), 0));
  EXPECT_EQ(testing::error_of([&] { apply(negation({2}), {Tensor::zeros({2}, DType::i64)}); }),
            "negation: expected a floating tensor, got i64");
  const Recorder recorder;
  EXPECT_TRUE(apply(negation({3}), {meta({3})}).is_meta());
  ASSERT_EQ(recorder.operations().size(), 1u);
  EXPECT_EQ(recorder.operations()[0].kind(), OpKind::other);
  apply(negation({3}), {meta({3})});
  EXPECT_EQ(flops_of(recorder.operations()), 6);
}

// f64 is computed in f32 where a kernel has no f64 form.
TEST(Operation, WithoutAnF64KernelRunsInF32) {
  Operation halves{.name = "halves", .shape = {2}};
  halves.kernel = [](std::span<const View<const float>> in, std::span<const View<float>> out) {
    for (int i = 0; i < 2; ++i) out[0].data[i] = in[0].data[i] / 2;
  };
  EXPECT_FALSE(halves.kernel.f64);
  const Tensor y = apply(halves, {Tensor::from<double>({2}, {1, 5})});
  EXPECT_EQ(y.dtype(), DType::f64);
  EXPECT_EQ(y.data<double>()[1], 2.5);
}

TEST(Recorder, MergedTokensHaveThreeOutputs) {
  const Tensor x = meta({2, 9, 6}, DType::bf16), keys = meta({2, 3, 9, 5}), sizes = meta({2, 9});
  for (const bool sized : {false, true}) {
    MergedTokens result;
    const Recorder recorder;
    result = merge_tokens(x, keys, sized ? sizes : Tensor(), 3, 2);
    ASSERT_EQ(recorder.operations().size(), 1u);
    const RecordedOperation& merge = recorder.operations()[0];
    EXPECT_EQ(merge.inputs.at(0).storage(), x.storage());
    EXPECT_EQ(merge.inputs.at(1).storage(), keys.storage());
    EXPECT_EQ(merge.inputs.at(2).defined(), sized);
    ASSERT_EQ(merge.outputs.size(), 3u);
    EXPECT_EQ(merge.outputs[0].shape(), (Shape{2, 6, 6}));
    EXPECT_EQ(merge.outputs[1].shape(), (Shape{2, 6}));
    EXPECT_EQ(merge.outputs[0].dtype(), DType::bf16);
    EXPECT_EQ(merge.outputs[1].dtype(), DType::f32);
    EXPECT_EQ(merge.outputs[2].dtype(), DType::f32);
    EXPECT_EQ(result.x.storage(), merge.outputs[0].storage());
    EXPECT_EQ(result.sizes.storage(), merge.outputs[1].storage());
    EXPECT_EQ(result.log_sizes.storage(), merge.outputs[2].storage());
  }
}

TEST(Recorder, OperationsOnStridedTensorsReadACopy) {
  const Recorder recorder;
  const Tensor map = meta({2, 4, 5, 12}).transpose(1, 2);
  pixel_shuffle(map, 2);
  ASSERT_EQ(recorder.operations().size(), 2u);
  EXPECT_EQ(recorder.operations()[0].operation->name, "copy");
  EXPECT_EQ(recorder.operations()[0].inputs[0].storage(), map.storage());
  EXPECT_EQ(recorder.operations()[1].inputs[0].storage(), recorder.operations()[0].outputs[0].storage());
}

TEST(Recorder, ErrorsSayWhatIsOneTooMany) {
  const Recorder recorder;
  EXPECT_EQ(testing::error_of([] { Recorder(); }),
            "recorder: expected one recorder at a time on a thread, got a second");
  EXPECT_EQ(testing::error_of([] {
              residual_add(meta({2, 3}), meta({2, 3}), {}, Tensor::zeros({2}, DType::f64));
            }),
            "residual_add: expected no stochastic depth in a recorded pass, got keep factors");
}

TEST(Recorder, RolesOfTokensAreReplacedAndKeptWithTheirNumber) {
  const Tensor x = meta({1, 5, 3});
  annotate_tokens(x, {.class_token = true, .head_tokens = 9});  // without a recorder: ignored
  const Recorder recorder;
  EXPECT_TRUE(recorder.token_roles().empty());
  annotate_tokens(x, {.class_token = true, .head_tokens = 1});
  annotate_tokens(x, {.class_token = false, .head_tokens = 2});
  ASSERT_EQ(recorder.token_roles().size(), 1u);
  EXPECT_FALSE(recorder.token_roles().at(x.storage().get()).class_token);
  EXPECT_EQ(recorder.token_roles().at(x.storage().get()).head_tokens, 2);
}

TEST(Symbolic, IsTrueForAnyInputWithoutData) {
  const Tensor none, data = Tensor::zeros({1}), without = meta({1});
  EXPECT_FALSE(symbolic(std::initializer_list<Tensor>{}));
  EXPECT_FALSE(symbolic({none, data}));
  EXPECT_TRUE(symbolic({none, data, without}));
  EXPECT_TRUE(symbolic({without, data}));
}

TEST(Recorder, EndsWithItsLifetime) {
  { const Recorder first; }
  add(meta({1}), meta({1}));
  const Recorder second;
  EXPECT_TRUE(second.operations().empty());
}

}  // namespace
}  // namespace vitrail::ops
