// SPDX-License-Identifier: Apache-2.0
// Graphs as they are built and written: names, equal operators, constants, attributes and files.
#include "vitrail/onnx/graph_builder_internal.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/onnx_file.h"
#include "tests/support/paths.h"
#include "vitrail/onnx/export_internal.h"

namespace vitrail::onnx {
namespace {

namespace fs = std::filesystem;
using testing::OnnxFile;
using Names = std::vector<std::string>;

OnnxFile written(const GraphBuilder& graph, const ModelInfo& info = {}, uint64_t inline_bytes = 1 << 20) {
  const fs::path path = testing::scratch_folder() / "graph.onnx";
  commit(graph.write(path, info, inline_bytes));
  return testing::read_onnx(path);
}

GraphBuilder with_input() {
  GraphBuilder graph;
  graph.add_input({"x", DType::f32, {kBatch, 3}});
  return graph;
}

TEST(GraphBuilder, EqualCallsGiveOneValue) {
  GraphBuilder graph = with_input();
  const std::string first = graph.node("Add", {"x", "x"});
  EXPECT_EQ(first, "Add_0");
  EXPECT_EQ(graph.node("Add", {"x", "x"}), first);
  EXPECT_EQ(graph.node("Mul", {"x", first}), "Mul_1");
  EXPECT_NE(graph.node("Mul", {first, "x"}), "Mul_1") << "the order of inputs counts";
  EXPECT_EQ(graph.node("Softmax", {"x"}, {{"axis", int64_t{1}}}), "Softmax_3");
  EXPECT_EQ(graph.node("Softmax", {"x"}, {{"axis", int64_t{0}}}), "Softmax_4");
  EXPECT_EQ(graph.node("Softmax", {"x"}, {{"axis", int64_t{1}}}), "Softmax_3");
}

TEST(GraphBuilder, ConstantsAreNamedOnce) {
  GraphBuilder graph = with_input();
  EXPECT_EQ(graph.scalar(0.5), "scalar_0.5");
  EXPECT_EQ(graph.scalar(0.5), "scalar_0.5");
  EXPECT_EQ(graph.scalar(1.0 / 3), "scalar_0.333333");
  EXPECT_EQ(graph.scalar(0.333333), "scalar_0.333333_1") << "another number with the same text";
  EXPECT_EQ(graph.constant(Ints{2, -1, 3}), "ints_2_-1_3");
  EXPECT_EQ(graph.constant(Ints{2, -1, 3}), "ints_2_-1_3");
  EXPECT_EQ(graph.index(7), "index_7");
  EXPECT_EQ(graph.integer(7, DType::u8), "u8_7");
  EXPECT_EQ(graph.integer(7, DType::i8), "i8_7");
  EXPECT_EQ(graph.integer(7, DType::u8), "u8_7");
  const Tensor weight = Tensor::randn({2, 3}, 1);
  EXPECT_EQ(graph.constant(weight, "weight"), "weight");
  EXPECT_EQ(graph.constant(weight, "other"), "weight") << "the same memory";
  EXPECT_EQ(graph.constant(weight.transpose(0, 1), "weight"), "weight_1");
  EXPECT_EQ(graph.constant(weight.narrow(0, 1, 1), "weight"), "weight_2");
  EXPECT_EQ(graph.constant(Tensor::randn({2, 3}, 1), "x"), "x_1") << "x is the input";
}

// Constants of each type with their values, operators with each kind of attribute.
TEST(GraphBuilder, FilesHaveTheValuesAndAttributes) {
  GraphBuilder graph;
  graph.add_input({"x", DType::f32, {kBatch, kHeight, kWidth, 3}});
  graph.add_input({"points", DType::i64, {1, kNumPoints}});
  graph.add_input({"pixels", DType::u8, {2}});
  const Tensor strided = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6}).transpose(0, 1);
  std::string y = graph.node("Op", {"x", graph.constant(strided, "weight"), ""},
                             {{"i", int64_t{-3}}, {"f", 1.5F}, {"s", std::string("text")}, {"l", Ints{4, -5}}});
  y = graph.concat({y, graph.scalar(-0.25), graph.constant(Ints{7, -8}), graph.integer(200, DType::u8),
                    graph.integer(-100, DType::i8), graph.index(int64_t{1} << 40)},
                   -2);
  graph.add_output(graph.cast(y, DType::i64), {"y", DType::i64, {kBatch, 5}});
  const OnnxFile file = written(graph, {.opset = 20, .producer_version = "1.2", .metadata = {{"a", "b"}, {"c", ""}}});
  EXPECT_EQ(file.opset, 20);
  EXPECT_EQ(file.ir_version, 9);
  EXPECT_EQ(file.producer, "vitrail");
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"a", "b"}, {"c", ""}}));
  using Value = OnnxFile::Value;
  EXPECT_EQ(file.inputs, (std::vector<Value>{{"x", 1, {"batch", "height", "width", "3"}},
                                             {"points", 7, {"1", "num_points"}},
                                             {"pixels", 2, {"2"}}}));
  EXPECT_EQ(file.outputs, (std::vector<Value>{{"y", 7, {"batch", "5"}}}));
  const auto constant = [&](const char* name) { return file.constants.at(name); };
  EXPECT_EQ(constant("weight").shape, (Ints{3, 2}));
  EXPECT_EQ(constant("weight").values, (std::vector<double>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(constant("weight").type, 1);
  EXPECT_EQ(constant("scalar_-0.25").values, std::vector<double>{-0.25});
  EXPECT_TRUE(constant("scalar_-0.25").shape.empty());
  EXPECT_EQ(constant("ints_7_-8").values, (std::vector<double>{7, -8}));
  EXPECT_EQ(constant("ints_7_-8").shape, Ints{2});
  EXPECT_EQ(constant("ints_7_-8").type, 7);
  EXPECT_EQ(constant("u8_200").values, std::vector<double>{200});
  EXPECT_EQ(constant("u8_200").type, 2);
  EXPECT_EQ(constant("i8_-100").values, std::vector<double>{-100});
  EXPECT_EQ(constant("i8_-100").type, 3);
  EXPECT_EQ(constant("index_1099511627776").values, std::vector<double>{1099511627776});
  ASSERT_EQ(file.nodes.size(), 4u);
  const OnnxFile::Node& op = file.nodes[0];
  EXPECT_EQ(op.op, "Op");
  EXPECT_EQ(op.output, "Op_0");
  EXPECT_EQ(op.inputs, (Names{"x", "weight", ""}));
  EXPECT_EQ(op.numbers.at("i"), std::vector<double>{-3});
  EXPECT_EQ(op.numbers.at("f"), std::vector<double>{1.5});
  EXPECT_EQ(op.texts.at("s"), "text");
  EXPECT_EQ(op.numbers.at("l"), (std::vector<double>{4, -5}));
  EXPECT_EQ(file.nodes[1].op, "Concat");
  EXPECT_EQ(file.nodes[1].numbers.at("axis"), std::vector<double>{-2});
  EXPECT_EQ(file.nodes[2].op, "Cast");
  EXPECT_EQ(file.nodes[2].numbers.at("to"), std::vector<double>{7});
  EXPECT_EQ(file.nodes[3].op, "Identity");
  EXPECT_EQ(file.nodes[3].inputs, Names{"Cast_2"});
  EXPECT_EQ(file.nodes[3].output, "y");
}

TEST(GraphBuilder, ShortFormsAreTheirOperators) {
  GraphBuilder graph = with_input();
  std::string y = graph.slice("x", {0, 1}, {2, 3}, {4, 5});
  y = graph.transpose(graph.reshape(y, {6, -1}), {1, 0});
  y = graph.node("Add", {y, graph.cast(graph.extent("x", 2), DType::f32)});
  graph.add_output(y, {"y", DType::f32, {3}});
  const OnnxFile file = written(graph);
  EXPECT_EQ(file.nodes[0].op, "Slice");
  EXPECT_EQ(file.nodes[0].inputs, (Names{"x", "ints_2_3", "ints_4_5", "ints_0_1"}));  // starts, ends, axes
  EXPECT_EQ(file.nodes[1].op, "Reshape");
  EXPECT_EQ(file.nodes[1].inputs, (Names{"Slice_0", "ints_6_-1"}));
  EXPECT_EQ(file.nodes[2].op, "Transpose");
  EXPECT_EQ(file.nodes[2].numbers.at("perm"), (std::vector<double>{1, 0}));
  EXPECT_EQ(file.nodes[3].op, "Shape");
  EXPECT_EQ(file.nodes[3].numbers.at("start"), std::vector<double>{2});
  EXPECT_EQ(file.nodes[3].numbers.at("end"), std::vector<double>{3});
  EXPECT_EQ(file.nodes[4].numbers.at("to"), std::vector<double>{1});
}

TEST(GraphBuilder, FilesHaveOnlyWhatOutputsNeed) {
  GraphBuilder graph = with_input();
  const std::string unused = graph.node("Mul", {"x", graph.constant(Tensor::zeros({3}), "unused")});
  const std::string used = graph.node("Add", {"x", graph.constant(Tensor::zeros({3}), "used")});
  graph.node("Tanh", {unused});
  graph.add_output(graph.node("Relu", {used}), {"y", DType::f32, {kBatch, 3}});
  const OnnxFile file = written(graph);
  Names ops, constants;
  for (const auto& node : file.nodes) ops.push_back(node.op);
  for (const auto& [name, constant] : file.constants) constants.push_back(name);
  EXPECT_EQ(ops, (Names{"Add", "Relu", "Identity"}));
  EXPECT_EQ(constants, Names{"used"});
  EXPECT_EQ(testing::graph_errors(file), "");
}

// Weights outside begin at multiples of 4096 bytes; integers of operators stay in the graph.
TEST(GraphBuilder, LargeWeightsAreAlignedInAFileBesideIt) {
  GraphBuilder graph = with_input();
  std::string y = "x";
  const Tensor first = Tensor::randn({1024}, 1), second = Tensor::randn({1025}, 2), third = Tensor::randn({3}, 3);
  y = graph.node("Op", {y, graph.constant(first, "first"), graph.constant(second, "second"),
                        graph.constant(third, "third"), graph.constant(Ints{5, 6})});
  graph.add_output(y, {"y", DType::f32, {3}});
  const fs::path folder = testing::scratch_folder(), path = folder / "big.onnx", data = folder / "big.onnx.data";
  const uint64_t bytes = 4 * (1024 + 1025 + 3) + 16;
  commit(graph.write(path, {}, bytes));
  EXPECT_FALSE(fs::exists(data));
  commit(graph.write(path, {}, bytes - 1));
  EXPECT_EQ(fs::file_size(data), 4096u + 8192 + 12);
  std::ifstream in(data, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  const auto at = [&](size_t offset, const Tensor& tensor) {
    return content.compare(offset, static_cast<size_t>(tensor.numel()) * 4, reinterpret_cast<const char*>(tensor.raw()),
                           static_cast<size_t>(tensor.numel()) * 4) == 0;
  };
  EXPECT_TRUE(at(0, first));
  EXPECT_TRUE(at(4096, second));
  EXPECT_TRUE(at(4096 + 8192, third));
  const OnnxFile file = testing::read_onnx(path);
  for (const auto& [name, tensor] :
       {std::pair("first", first), std::pair("second", second), std::pair("third", third)}) {
    const std::vector<double> want(tensor.data<float>(), tensor.data<float>() + tensor.numel());
    EXPECT_EQ(file.constants.at(name).values, want) << name;
  }
  EXPECT_EQ(file.constants.at("ints_5_6").values, (std::vector<double>{5, 6}));
  std::ifstream model(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(model), {}};
  EXPECT_TRUE(testing::contains(text, "big.onnx.data"));
  EXPECT_FALSE(testing::contains(text, folder.string())) << "beside the graph, wherever that is";
}

TEST(GraphBuilder, OtherTypesAreErrors) {
  GraphBuilder graph = with_input();
  graph.add_output("x", {"y", DType::f64, {3}});
  EXPECT_ERROR(testing::error_of([&] { written(graph); }), "ONNX tensor", "f64");
  EXPECT_THROW(graph.cast("x", DType::bf16), Error);
}

TEST(OnnxOptions, OpsetsHaveLimits) {
  EXPECT_EQ(OnnxOptions().opset, 17);
  EXPECT_EQ(OnnxOptions().inline_bytes, 1'900'000'000u);
  EXPECT_FALSE(OnnxOptions().dynamic_batch);
  EXPECT_EQ(OnnxOptions().input, Input::float32);
  for (int opset = 17; opset <= 21; ++opset) EXPECT_NO_THROW(check({.opset = opset}));
  for (const int opset : {16, 22}) {
    EXPECT_EQ(testing::error_of([&] { check({.opset = opset}); }),
              str("ONNX: expected an opset from 17 to 21, got ", opset));
  }
}

TEST(NormalisedPixels, NeedMeanAndStd) {
  const std::string want =
      "ONNX: expected mean and std in the model's configuration, or the options --mean and --std, for uint8 input, got "
      "none";
  GraphBuilder graph;
  graph.add_input({"pixels", DType::u8, {1, 2, 2, 2}});
  EXPECT_EQ(testing::error_of([&] { normalised_pixels(graph, "pixels", {.mean = std::vector<double>{0.5}}, 2); }),
            want);
  EXPECT_EQ(testing::error_of([&] { normalised_pixels(graph, "pixels", {.std = std::vector<double>{0.5}}, 2); }), want);
  const std::string result = normalised_pixels(
      graph, "pixels", {.mean = std::vector<double>{0.25}, .std = std::vector<double>{0.5, 2}, .rescale_factor = 0.125},
      2);
  graph.add_output(result, {"y", DType::f32, {1, 2, 2, 2}});
  const OnnxFile file = written(graph);
  EXPECT_EQ(file.constants.at("pixel_factor").shape, (Ints{1, 2, 1, 1}));
  EXPECT_EQ(file.constants.at("pixel_factor").values, (std::vector<double>{0.25, 0.0625}));
  EXPECT_EQ(file.constants.at("pixel_shift").values, (std::vector<double>{-0.5, -0.125}));
  EXPECT_EQ(file.nodes[1].numbers.at("perm"), (std::vector<double>{0, 3, 1, 2}));
}

}  // namespace
}  // namespace vitrail::onnx
