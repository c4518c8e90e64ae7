// SPDX-License-Identifier: Apache-2.0
// What each recorded operation becomes, computed by an interpreter of the operators, against the operation itself.
#include "vitrail/onnx/lowering_internal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/onnx_run.h"
#include "tests/support/operations.h"
#include "tests/support/paths.h"

namespace vitrail::onnx {
namespace {

using kernels::Activation;
using testing::OnnxFile;
using Function = std::function<Tensor(const Tensor&)>;

testing::OnnxArray array_of(const Tensor& tensor) {
  const Tensor values = tensor.to(DType::f32).contiguous();
  return {{tensor.shape().begin(), tensor.shape().end()},
          {values.data<float>(), values.data<float>() + values.numel()},
          tensor.dtype() == DType::i64};
}

Tensor meta(const Shape& shape, DType dtype = DType::f32) { return Tensor::empty(shape, dtype, Device::meta); }

// The graph of a function of x [B, …], recorded for the batch that exports record.
OnnxFile exported(const Function& function, const Tensor& x, const Lowering::Options& options = {},
                  const std::map<const Storage*, std::string>& names = {}) {
  Shape shape = x.shape();
  shape[0] = kRecordedBatch;
  const Tensor input = meta(shape, x.dtype());
  const ops::Recorder recorder;
  const Tensor result = function(input);
  GraphBuilder graph;
  Ints extents(x.shape().begin(), x.shape().end());
  graph.add_input({"x", x.dtype(), extents});
  Lowering lowering(graph, names, options);
  lowering.bind_batch(input, "x");
  for (const ops::RecordedOperation& operation : recorder.operations()) lowering.lower(operation);
  graph.add_output(lowering.value_of(result), {"y", DType::f32, {}});
  const auto path = testing::scratch_folder() / "a.onnx";
  commit(graph.write(path, {.opset = options.opset}, 1 << 30));
  return testing::read_onnx(path);
}

void expect_values(const Function& function, const Tensor& x, const Lowering::Options& options = {}) {
  const OnnxFile file = exported(function, x, options);
  EXPECT_EQ(testing::graph_errors(file), "");
  const Tensor want = function(x);
  auto outputs = testing::run_onnx(file, {{"x", array_of(x)}});
  const testing::OnnxArray& got = outputs.at("y");
  ASSERT_EQ(Shape(std::span<const int64_t>(got.shape)), want.shape());
  const Tensor values = Tensor::from<double>(want.shape(), got.values);
  EXPECT_TRUE(testing::close(values, want, 1e-4, 1e-4));
}

// For one sample, and for any number.
void expect_values_of_batches(const Function& function, const Shape& sample) {
  for (const int64_t batch : {1, 3}) {
    Shape shape{batch};
    for (const int64_t extent : sample) shape.push_back(extent);
    const Tensor x = Tensor::randn(shape, 1);
    expect_values(function, x, {.dynamic_batch = batch > 1});
    expect_values(function, x, {.opset = 18, .dynamic_batch = batch > 1});
  }
}

class EveryOperation : public ::testing::TestWithParam<testing::OperationCase> {};

TEST_P(EveryOperation, IsLoweredOrRefusedByItsName) {
  const testing::OperationCase& each = GetParam();
  if (!each.compiled) return;  // the table of an embedding is no batch; exports of text towers have one
  std::vector<Tensor> inputs = testing::inputs_of(each);
  const Function function = [&](const Tensor& x) {
    inputs[0] = x;
    return each.run(inputs);
  };
  if (each.exported) {
    const Shape& shape = each.shapes[0];
    expect_values_of_batches(function, Shape(std::span(shape.begin() + 1, shape.end())));
  } else {
    EXPECT_EQ(testing::error_of([&] { exported(function, inputs[0]); }),
              "ONNX: expected a model of operations that ONNX expresses, got " + std::string(each.name));
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, EveryOperation, ::testing::ValuesIn(testing::operation_cases()),
                         [](const auto& info) { return str(info.param.name, "_", info.index); });

TEST(Lowering, ActivationsAreTheirFormulas) {
  for (const Activation kind : {Activation::none, Activation::gelu, Activation::gelu_tanh, Activation::quick_gelu,
                                Activation::relu, Activation::silu, Activation::tanh}) {
    expect_values_of_batches([kind](const Tensor& x) { return ops::activation(ops::add(x, x), kind); }, {4, 5});
  }
}

TEST(Lowering, JoinedTensorsRepeatConstantsForEachSample) {
  const Tensor token = Tensor::randn({1, 2, 6}, 2);
  expect_values_of_batches([&](const Tensor& x) { return ops::cat({token.expand({x.size(0), 2, 6}), x}, 1); }, {4, 6});
  expect_values_of_batches([&](const Tensor& x) { return ops::cat({x, ops::mul(x, x)}, 2); }, {4, 6});
}

TEST(Lowering, AttentionScalesAndAddsItsBias) {
  const auto heads = [](const Tensor& x, int64_t i) {  // [B, 5, 3 · 2 · 4]
    return x.view({x.size(0), 5, 3, 2, 4}).permute({2, 0, 3, 1, 4}).select(0, i);
  };
  for (const Tensor& bias : {Tensor(), Tensor::randn({1, 2, 5, 5}, 2), Tensor::randn({5, 5}, 3)}) {
    expect_values_of_batches(
        [&](const Tensor& x) { return ops::attention(heads(x, 0), heads(x, 1), heads(x, 2), 0.4, bias).out; }, {5, 24});
  }
  expect_values_of_batches(
      [&](const Tensor& x) {
        return ops::add(ops::attention(heads(x, 0), heads(x, 1), heads(x, 2), 0.4, {}, true).weights,
                        Tensor::zeros({1}));
      },
      {5, 24});
}

TEST(Lowering, RotaryRotatesTheTokensBehindThePrefix) {
  for (const ops::RotaryPairs pairs : {ops::RotaryPairs::halves, ops::RotaryPairs::interleaved}) {
    for (const int64_t heads : {1, 2}) {
      const Tensor table = ops::rotary_table(Tensor::randn({1, heads, 3, 3}, 2));
      expect_values_of_batches([&](const Tensor& x) { return ops::rotary(x, table, 2, pairs); }, {5, 36});
    }
  }
  const auto error = [](const Tensor& table) {
    return testing::error_of([&] {
      exported([&](const Tensor& x) { return ops::rotary(x, table, 1, ops::RotaryPairs::halves); },
               Tensor::zeros({1, 3, 12}));
    });
  };
  EXPECT_EQ(error(meta({1, 1, 3, 4})), "ONNX: expected rotary tables of parameters, got a computed table");
  EXPECT_EQ(error(Tensor::zeros({kRecordedBatch, 1, 3, 4})),
            "ONNX: expected rotary tables of parameters, got a table per image");
}

TEST(Lowering, PatchesAreCutWithAndWithoutARemainder) {
  for (const Shape& image : {Shape{2, 6, 8}, Shape{2, 7, 8}, Shape{2, 6, 11}}) {
    expect_values_of_batches([](const Tensor& x) { return ops::patchify(x, 3, 4); }, image);
  }
}

TEST(Lowering, WindowsArePaddedAndCutAgain) {
  const Tensor fill = Tensor::randn({3}, 2), weight = Tensor::randn({3, 3}, 3), bias = Tensor::randn({3}, 4);
  for (const Shape& map : {Shape{4, 6, 3}, Shape{5, 6, 3}, Shape{4, 7, 3}, Shape{3, 5, 3}}) {
    expect_values_of_batches([](const Tensor& x) { return ops::window_partition(x, 2); }, map);
    expect_values_of_batches([&](const Tensor& x) { return ops::window_partition(x, 2, fill); }, map);
    expect_values_of_batches(
        [&](const Tensor& x) { return ops::window_partition(ops::linear(x, weight, bias), 2, bias); }, map);
    expect_values_of_batches(
        [](const Tensor& x) { return ops::window_unpartition(ops::window_partition(x, 2), 2, x.size(1), x.size(2)); },
        map);
  }
}

TEST(Lowering, ConvolutionsAreThoseOfTheirLayers) {
  const Tensor weight = Tensor::randn({5, 27}, 2), bias = Tensor::randn({5}, 3);
  const Tensor depthwise = Tensor::randn({3, 3, 3}, 4), own = Tensor::randn({3}, 5);
  for (const int64_t stride : {1, 2}) {
    expect_values_of_batches(
        [&](const Tensor& x) { return ops::linear(ops::unfold_3x3(x, stride), weight, bias, Activation::relu); },
        {4, 5, 3});
    expect_values_of_batches([&](const Tensor& x) { return ops::linear(ops::unfold_3x3(x, stride), weight, {}); },
                             {4, 5, 3});
    expect_values_of_batches([&](const Tensor& x) { return ops::depthwise_conv_3x3(x, depthwise, own, stride); },
                             {4, 5, 3});
  }
  for (const int64_t factor : {2, 3}) {
    expect_values_of_batches([factor](const Tensor& x) { return ops::pixel_shuffle(x, factor); }, {2, 3, 36});
  }
}

TEST(Lowering, MatricesAreReadAsTheyAreOrTransposed) {
  expect_values_of_batches([](const Tensor& x) { return ops::matmul(x, x.transpose(1, 2)); }, {4, 6});
  expect_values_of_batches([](const Tensor& x) { return ops::matmul(x.transpose(1, 2), x); }, {4, 6});
  expect_values_of_batches([](const Tensor& x) { return ops::matmul(ops::matmul(x, x.transpose(1, 2)), x); }, {4, 6});
}

TEST(Lowering, EmbeddingsGatherRows) {
  const Tensor table = Tensor::randn({7, 3}, 2);
  expect_values([&](const Tensor& ids) { return ops::embedding(ids, table); },
                Tensor::from<int64_t>({1, 4}, {6, 0, 3, 3}));
}

TEST(Lowering, CopiesOfViewsAreTheViews) {
  expect_values_of_batches([](const Tensor& x) { return ops::contiguous(x.transpose(1, 2)); }, {4, 6});
  expect_values_of_batches([](const Tensor& x) { return ops::contiguous(x.narrow(1, 1, 2)); }, {4, 6});
  expect_values_of_batches([](const Tensor& x) { return ops::mean(x.select(1, 3).unsqueeze(1), 1); }, {4, 6});
}

TEST(Lowering, ConstantsHaveTheNamesOfTheirParameters) {
  const Tensor weight = Tensor::randn({3, 5}, 2), bias = Tensor::randn({3}, 3);
  const OnnxFile file = exported([&](const Tensor& x) { return ops::linear(x, weight, bias); },
                                 Tensor::zeros({1, 4, 5}), {}, {{weight.storage().get(), "fc.weight"}});
  EXPECT_EQ(file.constants.at("fc.weight").shape, (Ints{5, 3})) << "transposed";
  EXPECT_EQ(file.constants.at("constant").shape, Ints{3});
}

TEST(Lowering, QuantisedActivationsAreThoseOfTheirLayers) {
  const Tensor weight = Tensor::randn({3, 5}, 2);
  const std::map<const Storage*, std::string> names{{weight.storage().get(), "blocks.0.fc.weight"}};
  Lowering::Options options;
  options.activations = {{"blocks.0.fc", {DType::i8, 0.25F, -3}}};
  const OnnxFile file =
      exported([&](const Tensor& x) { return ops::linear(x, weight, {}); }, Tensor::zeros({1, 4, 5}), options, names);
  EXPECT_EQ(file.count("QuantizeLinear"), 1);
  EXPECT_EQ(file.count("DequantizeLinear"), 2);
  EXPECT_EQ(file.constants.at("scalar_0.25").values, std::vector<double>{0.25});
  EXPECT_EQ(file.constants.at("i8_-3").values, std::vector<double>{-3});
  EXPECT_EQ(file.constants.at("i8_-3").type, 3);
  EXPECT_EQ(file.constants.at("blocks.0.fc.weight").type, 3);
  EXPECT_EQ(file.constants.at("blocks.0.fc.weight_scale").shape, Ints{3});
  EXPECT_EQ(file.constants.at("blocks.0.fc.weight_zero_point").values, std::vector<double>(3, 0));
  EXPECT_EQ(file.constants.at("blocks.0.fc.weight_zero_point").type, 3);
  for (const auto& node : file.nodes) {
    if (node.op == "DequantizeLinear" && node.inputs[0] == "blocks.0.fc.weight") {
      EXPECT_EQ(node.numbers.at("axis"), std::vector<double>{1});
    }
  }
  GraphBuilder graph;
  EXPECT_EQ(Lowering(graph, {}, options).unused_activations(), std::vector<std::string>{"blocks.0.fc"});
}

TEST(Lowering, RefusesToReadWhatHasNoValue) {
  const auto error = [](const Function& function) {
    return testing::error_of([&] { exported(function, Tensor::zeros({1, 6, 8})); });
  };
  EXPECT_EQ(error([](const Tensor& x) { return ops::add(x, meta({8})); }),
            "ONNX: expected operations that read the images, parameters or earlier results, got a read of [8], which "
            "nothing has written");
  GraphBuilder graph;
  const Tensor packed = meta({3, 5});
  Lowering lowering(graph, {{packed.storage().get(), "fc.weight"}}, {});
  EXPECT_EQ(testing::error_of([&] { lowering.value_of(packed); }),
            "ONNX: expected a model with its weights, which no session has packed, got fc.weight without data");
}

TEST(Views, ErrorsNameTheViewAndTheReason) {
  const Tensor tokens = Tensor::zeros({kRecordedBatch, 6, 4});
  const std::string expected =
      "ONNX: expected views that slices, reshapes and transpositions of the whole batch express, got a view ";
  EXPECT_EQ(testing::error_of([&] { steps_of(tokens.narrow(0, 0, 2)); }),
            expected + "[2, 6, 4] of strides [24, 4, 1] at 0: it has a part of the batch");
  EXPECT_EQ(testing::error_of([&] { steps_of(tokens.select(0, 1).select(0, 1).select(0, 2)); }),
            expected + "[] of strides [] at 30: it has no batch");
  EXPECT_EQ(testing::error_of([&] {
              steps_of(Tensor(tokens.storage(), DType::f32, {kRecordedBatch, 5, 8}, {24, 4, 1}, 0));
            }),
            expected + "[13, 5, 8] of strides [24, 4, 1] at 0: it overlaps itself");
  EXPECT_EQ(testing::error_of([&] {
              steps_of(Tensor(tokens.storage(), DType::f32, {kRecordedBatch, 2}, {24, 5}, 0));
            }),
            expected + "[13, 2] of strides [24, 5] at 0: strides do not divide each other");
  EXPECT_EQ(kRecordedBatch, 13);
}

}  // namespace
}  // namespace vitrail::onnx
