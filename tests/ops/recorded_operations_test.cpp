// SPDX-License-Identifier: Apache-2.0
// What a recorder lists of each operation, and what the functions of custom operations compute.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/patchify.h"
#include "vitrail/ops/recorder.h"
#include "vitrail/ops/relative_attention.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/rms_norm.h"
#include "vitrail/ops/rotary.h"
#include "vitrail/ops/softmax.h"
#include "vitrail/ops/token_merging.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/ops/window.h"

namespace vitrail::ops {
namespace {

Tensor meta_of(const Shape& shape, DType dtype = DType::f32) { return Tensor::empty(shape, dtype, Device::meta); }

// The only operation that `action` records.
Operation recorded(const std::function<void()>& action) {
  const Recorder recorder;
  action();
  EXPECT_EQ(recorder.operations().size(), 1u);
  return recorder.operations().empty() ? Operation{OpKind::copy, {meta_of({})}, {meta_of({})}, {}}
                                       : recorder.operations()[0];
}

TEST(OpKind, EachHasItsName) {
  const std::pair<OpKind, const char*> names[] = {
      {OpKind::linear, "linear"},
      {OpKind::layer_norm, "layer_norm"},
      {OpKind::rms_norm, "rms_norm"},
      {OpKind::residual_add, "residual_add"},
      {OpKind::attention, "attention"},
      {OpKind::rotary, "rotary"},
      {OpKind::patchify, "patchify"},
      {OpKind::activation, "activation"},
      {OpKind::silu_gate, "silu_gate"},
      {OpKind::add, "add"},
      {OpKind::mul, "mul"},
      {OpKind::cat, "cat"},
      {OpKind::mean, "mean"},
      {OpKind::copy, "copy"},
      {OpKind::merge_tokens, "merge_tokens"},
      {OpKind::embedding, "embedding"},
      {OpKind::custom, "custom"},
  };
  EXPECT_EQ(std::size(names), static_cast<size_t>(OpKind::custom) + 1);
  for (const auto& [kind, name] : names) EXPECT_STREQ(name_of(kind), name);
}

TEST(OpAttributes, HaveTheirDefaults) {
  const OpAttributes none;
  EXPECT_EQ(none.activation, kernels::Activation::none);
  EXPECT_EQ(none.eps, 0);
  EXPECT_EQ(none.scale, 1);
  EXPECT_EQ(none.pairs, kernels::RotaryPairs::halves);
  EXPECT_EQ(none.custom, nullptr);
  EXPECT_EQ(CustomOperation::kMaxTensors, 8u);
  EXPECT_EQ(CustomOperation().flops, 0);
  EXPECT_FALSE(CustomOperation().keeps_token_order);
  EXPECT_FALSE(TokenRoles().class_token);
  EXPECT_EQ(TokenRoles().head_tokens, 0);
}

TEST(RecordedOperation, HasItsInputsInTheirOrderAndItsAttributes) {
  const Tensor weight = Tensor::randn({6, 4}, 1), bias = Tensor::randn({6}, 2), gamma = Tensor::randn({4}, 3),
               beta = Tensor::randn({4}, 4), x = meta_of({2, 3, 4}), y = meta_of({2, 3, 4});
  const auto stored = [](const Operation& operation, size_t i) { return operation.inputs.at(i).storage(); };

  const Operation product = recorded([&] { linear(x, weight, bias, kernels::Activation::silu); });
  EXPECT_EQ(stored(product, 0), x.storage());
  EXPECT_EQ(stored(product, 1), weight.storage());
  EXPECT_EQ(stored(product, 2), bias.storage());
  EXPECT_EQ(product.attributes.activation, kernels::Activation::silu);

  const Operation norm = recorded([&] { layer_norm(x, gamma, beta, 1e-3); });
  EXPECT_EQ(stored(norm, 1), gamma.storage());
  EXPECT_EQ(stored(norm, 2), beta.storage());
  EXPECT_EQ(norm.attributes.eps, 1e-3);

  const Operation rms = recorded([&] { rms_norm(x, gamma, 1e-4); });
  EXPECT_EQ(stored(rms, 0), x.storage());
  EXPECT_EQ(stored(rms, 1), gamma.storage());
  EXPECT_EQ(rms.attributes.eps, 1e-4);

  const Operation sum = recorded([&] { residual_add(x, y, gamma); });
  EXPECT_EQ(stored(sum, 0), x.storage());
  EXPECT_EQ(stored(sum, 1), y.storage());
  EXPECT_EQ(stored(sum, 2), gamma.storage());

  const Tensor q = meta_of({2, 3, 5, 4}), k = meta_of({2, 3, 7, 4}), v = meta_of({2, 3, 7, 4}),
               scores = Tensor::zeros({5, 7});
  const Operation attended = recorded([&] { attention(q, k, v, 0.125, scores); });
  EXPECT_EQ(stored(attended, 0), q.storage());
  EXPECT_EQ(stored(attended, 1), k.storage());
  EXPECT_EQ(stored(attended, 2), v.storage());
  EXPECT_EQ(stored(attended, 3), scores.storage());
  EXPECT_EQ(attended.attributes.scale, 0.125);
  EXPECT_FALSE(attended.outputs.at(1).defined()) << "nobody asked for the weights";
  EXPECT_FALSE(recorded([&] { attention(q, k, v, 1); }).inputs.at(3).defined());

  const Operation gate = recorded([&] { silu_gate(x); });
  EXPECT_EQ(gate.inputs.size(), 1u);
  const Operation activated = recorded([&] { activation(x, kernels::Activation::tanh); });
  EXPECT_EQ(activated.attributes.activation, kernels::Activation::tanh);

  for (const auto& [operation, kind] :
       {std::pair(recorded([&] { add(x, y); }), OpKind::add), std::pair(recorded([&] { mul(x, y); }), OpKind::mul)}) {
    EXPECT_EQ(operation.kind, kind);
    EXPECT_EQ(stored(operation, 0), x.storage());
    EXPECT_EQ(stored(operation, 1), y.storage());
  }

  const Operation mean_over_tokens = recorded([&] { mean(x, 1); });
  EXPECT_EQ(mean_over_tokens.attributes.axis, 1);
  EXPECT_EQ(recorded([&] { mean(x, -1); }).attributes.axis, 2);
  EXPECT_EQ(recorded([&] { cat({x, y, x}, -1); }).attributes.axis, 2);

  const Tensor ids = Tensor::zeros({2, 5}, DType::i64), table = meta_of({9, 4}, DType::bf16);
  const Operation looked_up = recorded([&] { embedding(ids, table); });
  EXPECT_EQ(looked_up.kind, OpKind::embedding);
  EXPECT_EQ(stored(looked_up, 0), ids.storage());
  EXPECT_EQ(stored(looked_up, 1), table.storage());
  EXPECT_EQ(looked_up.outputs[0].shape(), (Shape{2, 5, 4}));
  EXPECT_EQ(looked_up.outputs[0].dtype(), DType::bf16);
  EXPECT_EQ(recorded([&] {
              embedding(meta_of({3}, DType::i64), Tensor::zeros({9, 4}));
            })
                .outputs[0]
                .shape(),
            (Shape{3, 4}));

  const Tensor qkv = meta_of({2, 3, 24}), angles = meta_of({1, 2, 2, 4});
  const Operation rotated = recorded([&] { rotary(qkv, angles, 2, RotaryPairs::interleaved); });
  EXPECT_EQ(stored(rotated, 0), qkv.storage());
  EXPECT_EQ(stored(rotated, 1), angles.storage());
  EXPECT_EQ(rotated.attributes.heads, 2);
  EXPECT_EQ(recorded([&] { rotary(Tensor::zeros({2, 3, 24}), angles, 2, RotaryPairs::halves); }).kind, OpKind::rotary);
}

TEST(RecordedOperation, OfMergedTokensHasThreeOutputs) {
  const Tensor x = meta_of({2, 9, 6}, DType::bf16), keys = meta_of({2, 3, 9, 5}), sizes = meta_of({2, 9});
  for (const bool sized : {false, true}) {
    MergedTokens result;
    const Operation merge = recorded([&] { result = merge_tokens(x, keys, sized ? sizes : Tensor(), 3, 2); });
    EXPECT_EQ(merge.kind, OpKind::merge_tokens);
    EXPECT_EQ(merge.inputs.at(0).storage(), x.storage());
    EXPECT_EQ(merge.inputs.at(1).storage(), keys.storage());
    EXPECT_EQ(merge.inputs.at(2).defined(), sized);
    EXPECT_EQ(merge.attributes.merged, 3);
    EXPECT_EQ(merge.attributes.prefix, 2);
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

// Results have the dtype of the first input, whatever it is.
TEST(RecordedOperation, HasTheDtypeOfItsInput) {
  const Tensor x = meta_of({2, 6, 4}, DType::bf16), map = meta_of({1, 3, 5, 8}, DType::bf16);
  const Tensor qkv = meta_of({2, 6, 24}, DType::bf16), q = meta_of({2, 3, 5, 4}, DType::bf16);
  const std::vector<std::pair<const char*, std::function<Tensor()>>> calls{
      {"linear",
       [&] {
         return linear(x, Tensor::zeros({3, 4}), {});
       }},
      {"layer_norm", [&] { return layer_norm(x, {}, {}, 1e-6); }},
      {"rms_norm", [&] { return rms_norm(x, {}, 1e-6); }},
      {"residual_add", [&] { return residual_add(x, x); }},
      {"attention", [&] { return attention(q, q, q, 1, {}, true).out; }},
      {"weights", [&] { return attention(q, q, q, 1, {}, true).weights; }},
      {"patchify", [&] { return patchify(map, 1, 1); }},
      {"activation", [&] { return activation(x, kernels::Activation::gelu); }},
      {"silu_gate", [&] { return silu_gate(x); }},
      {"add", [&] { return add(x, Tensor::zeros({4})); }},
      {"mul", [&] { return mul(x, Tensor::zeros({4})); }},
      {"cat",
       [&] {
         return cat({x, x}, 1);
       }},
      {"mean", [&] { return mean(x, 1); }},
      {"contiguous", [&] { return contiguous(x.transpose(0, 1)); }},
      {"rotary",
       [&] {
         return rotary(qkv, Tensor::zeros({1, 1, 2, 4}), 2, RotaryPairs::halves);
       }},
      {"rotary_table", [&] { return rotary_table(x); }},
      {"softmax", [&] { return softmax(x); }},
      {"matmul", [&] { return matmul(x, x.transpose(1, 2)); }},
      {"unfold_3x3", [&] { return unfold_3x3(map); }},
      {"depthwise",
       [&] {
         return depthwise_conv_3x3(map, Tensor::zeros({8, 3, 3}), Tensor::zeros({8}));
       }},
      {"pixel_shuffle", [&] { return pixel_shuffle(map, 2); }},
      {"resize", [&] { return resize_bilinear(map, 2, 2); }},
      {"window_partition", [&] { return window_partition(map, 2); }},
      {"relative", [&] {
         return relative_self_attention(qkv, 2, 1, Tensor::zeros({3, 4}), Tensor::zeros({5, 4}), {2, 3});
       }}};
  for (const auto& [name, call] : calls) {
    const Recorder recorder;
    const Tensor result = call();
    EXPECT_TRUE(result.is_meta()) << name;
    EXPECT_EQ(result.dtype(), DType::bf16) << name;
    EXPECT_FALSE(recorder.operations().empty()) << name;
  }
}

struct Custom {
  const char* name;
  std::vector<Tensor> inputs;  // the first is the one without data when it is recorded
  std::function<Tensor(const std::vector<Tensor>&)> run;
  double flops = 0;
  int64_t height = 0, width = 0, heads = 0;
  int axis = 0;
  double scale = 1;
};

std::vector<Custom> custom_operations() {
  const Tensor map = Tensor::randn({2, 5, 4, 12}, 1), matrix = Tensor::randn({2, 4, 3}, 2);
  const Tensor qkv = Tensor::randn({2, 6, 24}, 3), rows = Tensor::randn({3, 4}, 4), columns = Tensor::randn({5, 4}, 5);
  using In = const std::vector<Tensor>&;
  return {{.name = "matmul",
           .inputs = {Tensor::randn({2, 5, 4}, 6), matrix},
           .run = [](In in) { return matmul(in[0], in[1]); },
           .flops = 2.0 * 2 * 5 * 3 * 4,
           .axis = 1},
          {.name = "matmul",
           .inputs = {Tensor::randn({2, 5, 3}, 6), matrix},
           .run = [](In in) { return matmul(in[0], in[1].transpose(1, 2)); },
           .flops = 2.0 * 2 * 5 * 4 * 3,
           .axis = 2},
          {.name = "softmax", .inputs = {Tensor::randn({3, 7}, 7)}, .run = [](In in) { return softmax(in[0]); }},
          {.name = "resize_bilinear", .inputs = {map}, .run = [](In in) { return resize_bilinear(in[0], 7, 9); }},
          {.name = "window_partition",
           .inputs = {map, Tensor::randn({12}, 8)},
           .run = [](In in) { return window_partition(in[0], 3, in[1]); },
           .height = 3,
           .width = 3},
          {.name = "window_unpartition",
           .inputs = {Tensor::randn({8, 9, 2}, 9)},
           .run = [](In in) { return window_unpartition(in[0], 3, 5, 4); },
           .height = 3,
           .width = 3},
          {.name = "unfold_3x3",
           .inputs = {map},
           .run = [](In in) { return unfold_3x3(in[0], 2); },
           .height = 2,
           .width = 2},
          {.name = "depthwise_conv_3x3",
           .inputs = {map, Tensor::randn({12, 3, 3}, 10), Tensor::randn({12}, 11)},
           .run = [](In in) { return depthwise_conv_3x3(in[0], in[1], in[2], 2); },
           .flops = 2.0 * 9 * 2 * 3 * 2 * 12,
           .height = 2,
           .width = 2},
          {.name = "pixel_shuffle", .inputs = {map}, .run = [](In in) { return pixel_shuffle(in[0], 2); }},
          {.name = "rotary_table",
           .inputs = {Tensor::randn({2, 3, 4}, 12)},
           .run = [](In in) { return rotary_table(in[0]); }},
          {.name = "relative_self_attention",
           .inputs = {qkv, rows, columns},
           .run =
               [](In in) {
                 return relative_self_attention(in[0], 2, 0.3, in[1], in[2], {2, 3});
               },
           .flops = 2.0 * 8 * 6 * (4 * 6 + 4 * (2 + 3)),
           .height = 2,
           .width = 3,
           .heads = 2,
           .scale = 0.3}};
}

// The outputs of a function of a custom operation, for the inputs that it was recorded with.
Tensor computed(const CustomOperation::Function& function, const Operation& operation, const Tensor& data) {
  const Tensor result = Tensor::empty(operation.outputs[0].shape());
  std::vector<const float*> inputs;
  for (const Tensor& input : operation.inputs) {
    inputs.push_back(!input.defined() ? nullptr : (input.is_meta() ? data : input).data<float>());
  }
  std::vector<float*> outputs{result.data<float>()};
  function(inputs.data(), outputs.data());
  return result;
}

TEST(CustomOperations, ComputeWhatTheyComputeAtOnce) {
  for (const Custom& custom : custom_operations()) {
    SCOPED_TRACE(custom.name);
    std::vector<Tensor> inputs = custom.inputs;
    inputs[0] = meta_of(inputs[0].shape());
    const Operation operation = recorded([&] { custom.run(inputs); });
    ASSERT_EQ(operation.kind, OpKind::custom);
    const CustomOperation& step = *operation.attributes.custom;
    EXPECT_EQ(step.name, custom.name);
    EXPECT_EQ(step.flops, custom.flops);
    EXPECT_EQ(flops_of(operation), custom.flops);
    EXPECT_FALSE(step.keeps_token_order);
    EXPECT_EQ(operation.attributes.height, custom.height);
    EXPECT_EQ(operation.attributes.width, custom.width);
    EXPECT_EQ(operation.attributes.heads, custom.heads);
    EXPECT_EQ(operation.attributes.axis, custom.axis);
    EXPECT_EQ(operation.attributes.scale, custom.scale);
    EXPECT_EQ(operation.inputs.size(), custom.inputs.size());
    for (const Tensor& input : operation.inputs) EXPECT_TRUE(input.is_contiguous());
    const Tensor want = custom.run(custom.inputs);
    EXPECT_TRUE(testing::close(computed(step.compute, operation, custom.inputs[0]), want, 1e-6));
    EXPECT_EQ(static_cast<bool>(step.compute_half), std::string(custom.name) == "relative_self_attention");
    if (step.compute_half) {
      EXPECT_TRUE(testing::close(computed(step.compute_half, operation, custom.inputs[0]), want, 0.1));
    }
  }
}

TEST(CustomOperations, OfStridedTensorsReadACopy) {
  const Recorder recorder;
  const Tensor map = meta_of({2, 4, 5, 12}).transpose(1, 2);
  pixel_shuffle(map, 2);
  ASSERT_EQ(recorder.operations().size(), 2u);
  EXPECT_EQ(recorder.operations()[0].kind, OpKind::copy);
  EXPECT_EQ(recorder.operations()[0].inputs[0].storage(), map.storage());
  EXPECT_EQ(recorder.operations()[1].inputs[0].storage(), recorder.operations()[0].outputs[0].storage());
}

TEST(CustomOperations, OfAWindowWithoutAFillHaveAnUndefinedInput) {
  const Operation operation = recorded([] { window_partition(meta_of({1, 3, 3, 2}), 2); });
  ASSERT_EQ(operation.inputs.size(), 2u);
  EXPECT_FALSE(operation.inputs[1].defined());
  const Tensor map = Tensor::randn({1, 3, 3, 2}, 1);
  EXPECT_TRUE(
      testing::close(computed(operation.attributes.custom->compute, operation, map), window_partition(map, 2), 0));
}

TEST(Recorder, ErrorsSayWhatIsOneTooMany) {
  const Recorder recorder;
  EXPECT_EQ(testing::error_of([] { Recorder(); }),
            "recorder: expected one recorder at a time on a thread, got a second");
  EXPECT_EQ(testing::error_of([] {
              residual_add(meta_of({2, 3}), meta_of({2, 3}), {}, Tensor::zeros({2}, DType::f64));
            }),
            "residual_add: expected no stochastic depth in a recorded pass, got keep factors");
}

TEST(Recorder, RolesOfTokensAreReplacedAndKeptWithTheirNumber) {
  const Tensor x = meta_of({1, 5, 3});
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
  const Tensor none, data = Tensor::zeros({1}), without = meta_of({1});
  EXPECT_FALSE(symbolic({}));
  EXPECT_FALSE(symbolic({&none, &data}));
  EXPECT_TRUE(symbolic({&none, &data, &without}));
  EXPECT_TRUE(symbolic({&without, &data}));
}

}  // namespace
}  // namespace vitrail::ops
