// SPDX-License-Identifier: Apache-2.0
// What the rewrites of a recorded list do, and what keeps them from it.
#include "vitrail/infer/rewrite_internal.h"

#include <gtest/gtest.h>

#include "tests/infer/meta.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::infer {
namespace {

using kernels::Activation;
using ops::OpKind;

// The rewritten list of what `function` records; the result is the only output unless it says otherwise.
template <class Function>
std::vector<FusedOperation> rewritten(const Function& function) {
  const ops::Recorder recorder;
  const std::vector<Tensor> outputs = function();
  return rewrite(recorder.operations(), outputs);
}

std::vector<OpKind> kinds_of(const std::vector<FusedOperation>& list) {
  std::vector<OpKind> kinds;
  for (const FusedOperation& item : list) kinds.push_back(item.op.kind());
  return kinds;
}

Tensor square_weight() { return Tensor::randn({4, 4}, 1); }

TEST(Rewrite, ALayerAddsTheResidualBehindIt) {
  for (const bool scaled : {false, true}) {
    const Tensor x = meta({2, 4}), h = meta({2, 4}), scale = scaled ? Tensor::randn({4}, 2) : Tensor();
    Tensor sum;
    const auto list = rewritten([&]() -> std::vector<Tensor> {
      sum = ops::residual_add(h, ops::linear(x, square_weight(), {}), scale);
      return {sum};
    });
    ASSERT_EQ(kinds_of(list), std::vector<OpKind>{OpKind::linear});
    EXPECT_TRUE(list[0].fused_residual());
    EXPECT_EQ(list[0].residual.storage(), h.storage());
    EXPECT_EQ(list[0].scale.defined(), scaled);
    EXPECT_EQ(list[0].op.inputs[0].storage(), x.storage());
    EXPECT_EQ(list[0].op.outputs[0].storage(), sum.storage());
  }
}

// The layer takes the place of the addition: its residual may be computed after the branch.
TEST(Rewrite, TheFusedLayerFollowsItsResidual) {
  const Tensor x = meta({2, 4});
  const auto list = rewritten([&]() -> std::vector<Tensor> {
    const Tensor branch = ops::linear(x, square_weight(), {});
    const Tensor residual = ops::activation(x, Activation::gelu);
    return {ops::residual_add(residual, branch)};
  });
  EXPECT_EQ(kinds_of(list), (std::vector<OpKind>{OpKind::other, OpKind::linear}));
}

TEST(Rewrite, ALayerDoesNotAddAResidualThatDoesNotFit) {
  const Tensor x = meta({2, 4}), h = meta({2, 4});
  using Kinds = std::vector<OpKind>;
  const auto kinds = [](const auto& function) { return kinds_of(rewritten(function)); };
  const Kinds apart{OpKind::linear, OpKind::residual_add};
  EXPECT_EQ(kinds([&]() -> std::vector<Tensor> {
              return {ops::residual_add(h, ops::linear(x, square_weight(), {}, Activation::gelu))};
            }),
            apart)
      << "behind an activation";
  EXPECT_EQ(kinds([&]() -> std::vector<Tensor> {
              const Tensor branch = ops::linear(x, square_weight(), {});
              return {ops::residual_add(h, branch), branch};
            }),
            apart)
      << "the branch is an output";
  EXPECT_EQ(kinds([&]() -> std::vector<Tensor> {
              const Tensor branch = ops::linear(x, square_weight(), {});
              return {ops::residual_add(h, branch), ops::activation(branch, Activation::relu)};
            }),
            (Kinds{OpKind::linear, OpKind::residual_add, OpKind::other}))
      << "the branch is read again";
  EXPECT_EQ(kinds([&]() -> std::vector<Tensor> {
              const Tensor branch = ops::linear(x, square_weight(), {});
              return {ops::residual_add(h.narrow(0, 0, 1), branch.narrow(0, 1, 1))};
            }),
            apart)
      << "a part of the branch";
  EXPECT_EQ(
      kinds([&]() -> std::vector<Tensor> { return {ops::residual_add(h, ops::activation(x, Activation::relu))}; }),
      (Kinds{OpKind::other, OpKind::residual_add}))
      << "not a layer";
  EXPECT_EQ(kinds([&]() -> std::vector<Tensor> { return {ops::residual_add(h, x)}; }), Kinds{OpKind::residual_add})
      << "an input";
  EXPECT_EQ(kinds([&]() -> std::vector<Tensor> {
              return {ops::residual_add(h, ops::residual_add(h, ops::linear(x, square_weight(), {})))};
            }),
            apart)
      << "a layer adds one residual";
}

TEST(Rewrite, OperationsThatNothingReadsAreRemoved) {
  const Tensor x = meta({2, 4});
  const auto list = rewritten([&]() -> std::vector<Tensor> {
    const Tensor used = ops::activation(x, Activation::gelu);
    const Tensor dead = ops::activation(used, Activation::relu);
    ops::add(dead, used);
    const Tensor residual = ops::activation(x, Activation::silu);
    return {ops::residual_add(residual, ops::linear(used, square_weight(), {}))};
  });
  ASSERT_EQ(kinds_of(list), (std::vector<OpKind>{OpKind::other, OpKind::other, OpKind::linear}));
  EXPECT_EQ(list[0].op.operation->text, "gelu") << "the order is kept";
  EXPECT_EQ(list[1].op.operation->text, "silu") << "a fused residual is read";
}

// One of an operation's results is enough.
TEST(Rewrite, AnOperationOfSeveralResultsIsKeptForEachOfThem) {
  for (const size_t read : {0, 1}) {
    const Tensor x = meta({4}), first = meta({4}), second = meta({4});
    const std::vector<FusedOperation> list =
        rewrite({recorded({}, {x, Tensor()}, {first, Tensor(), second})}, {read == 0 ? first : second});
    EXPECT_EQ(list.size(), 1u) << read;
  }
  EXPECT_TRUE(rewrite({recorded({}, {meta({4})}, {Tensor(), meta({4})})}, {meta({4})}).empty());
}

TEST(Rewrite, ASumIsWrittenIntoTheConcatenationThatAloneReadsIt) {
  const Tensor x = meta({2, 3, 4}), bias = Tensor::randn({4}, 1);
  const auto list = rewritten([&]() -> std::vector<Tensor> {
    const Tensor first = ops::add(x, bias), second = ops::add(bias, x);
    return {ops::cat({x, first, second}, 1)};
  });
  ASSERT_EQ(kinds_of(list), (std::vector<OpKind>{OpKind::other, OpKind::other, OpKind::cat}));
  const Tensor& joined = list[2].op.outputs[0];
  EXPECT_EQ(joined.shape(), (Shape{2, 9, 4}));
  for (const size_t i : {0, 1}) {
    const Tensor& sum = list[i].op.outputs[0];
    EXPECT_EQ(sum.storage(), joined.storage());
    EXPECT_EQ(sum.shape(), (Shape{2, 3, 4}));
    EXPECT_EQ(sum.offset(), (i == 0 ? 3 : 6) * 4) << "behind the parts before it";
    EXPECT_EQ(sum.strides(), joined.strides());
    EXPECT_EQ(list[2].op.inputs[i + 1].storage(), joined.storage());
  }
  EXPECT_EQ(list[2].op.inputs[0].storage(), x.storage());
}

TEST(Rewrite, OtherPartsOfAConcatenationAreCopied) {
  const Tensor x = meta({2, 3, 4}), bias = Tensor::randn({4}, 1);
  const auto copied = [&](const auto& make) {
    std::vector<Tensor> others;
    const auto list = rewritten([&]() -> std::vector<Tensor> {
      const Tensor part = make(others);
      others.insert(others.begin(), ops::cat({part, x}, 1));
      return others;
    });
    for (const FusedOperation& item : list) {
      if (item.op.kind() == OpKind::cat) return item.op.inputs[0].storage() != item.op.outputs[0].storage();
    }
    return false;
  };
  EXPECT_FALSE(copied([&](std::vector<Tensor>&) { return ops::add(x, bias); }));
  EXPECT_FALSE(copied([&](std::vector<Tensor>&) { return ops::mul(x, bias); }));
  EXPECT_TRUE(copied([&](std::vector<Tensor>&) { return ops::activation(x, Activation::relu); })) << "contiguous only";
  EXPECT_TRUE(copied([&](std::vector<Tensor>&) { return Tensor::randn({2, 3, 4}, 1); })) << "a constant";
  EXPECT_TRUE(copied([&](std::vector<Tensor>&) { return x; })) << "an input";
  EXPECT_TRUE(copied([&](std::vector<Tensor>& others) {
    const Tensor sum = ops::add(x, bias);
    others.push_back(ops::activation(sum, Activation::relu));
    return sum;
  })) << "read twice";
  EXPECT_TRUE(copied([&](std::vector<Tensor>& others) {
    const Tensor sum = ops::add(x, bias);
    others.push_back(sum);
    return sum;
  })) << "an output";
  EXPECT_TRUE(copied([&](std::vector<Tensor>&) { return ops::add(x, bias).narrow(1, 0, 2); })) << "a part";
  const Tensor turned = meta({3, 2, 4});
  EXPECT_TRUE(copied([&](std::vector<Tensor>&) { return ops::add(turned, bias).transpose(0, 1); })) << "transposed";
}

}  // namespace
}  // namespace vitrail::infer
