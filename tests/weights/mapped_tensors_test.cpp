// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/mapped_tensors_internal.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/torch_save.h"
#include "tests/weights/support.h"

namespace vitrail::weights {
namespace {

using Named = std::vector<std::pair<std::string, Tensor>>;

// 0, 1, 2, …
Tensor counting_tensor(const Shape& shape, DType dtype = DType::f32) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::from(shape, values).to(dtype);
}

std::vector<float> values_of(const Tensor& tensor) {
  EXPECT_TRUE(tensor.is_contiguous());
  const Tensor floats = tensor.to(DType::f32);
  return {floats.data<float>(), floats.data<float>() + floats.numel()};
}

// The tensor `name` of one file and one rule, or what is wrong with it.
struct Result {
  Shape shape;
  std::string problem;
  std::vector<float> values;
};
Result mapped(const Named& tensors, const std::string& rules, const std::string& name, const FieldSizes& sizes = {}) {
  const Checkpoint file = *checkpoint_of(tensors);
  const MappedTensors all(file, map_of(rules), sizes);
  const MappedTensor& tensor = all.all().at(name);
  if (!tensor.problem.empty()) return {tensor.shape, tensor.problem, {}};
  const Tensor read = all.read(file, tensor, DType::f32);
  EXPECT_EQ(read.shape(), tensor.shape);
  return {tensor.shape, "", values_of(read)};
}

using Values = std::vector<float>;

TEST(MappedTensors, RowsAreSkippedAndCounted) {
  const Tensor table = counting_tensor({5, 2});
  struct Case {
    const char* rule;
    Shape shape;
    Values values;
  };
  const Case cases[] = {{R"("skip": 3)", {2, 2}, {6, 7, 8, 9}},
                        {R"("rows": 2)", {2, 2}, {0, 1, 2, 3}},
                        {R"("skip": 1, "rows": 3)", {3, 2}, {2, 3, 4, 5, 6, 7}},
                        {R"("skip": 4)", {1, 2}, {8, 9}},
                        {R"("skip": 4, "rows": 1)", {1, 2}, {8, 9}},
                        {R"("rows": 5)", {5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
                        {R"("skip": 3, "rearrange": "n d -> d n")", {2, 2}, {6, 8, 7, 9}},
                        {R"("skip": 0)", {5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}};
  for (const Case& c : cases) {
    const Result got = mapped({{"t", table}}, str(R"({"from": "t", "to": "n", )", c.rule, "}"), "n");
    EXPECT_EQ(got.problem, "") << c.rule;
    EXPECT_EQ(got.shape, c.shape) << c.rule;
    EXPECT_EQ(got.values, c.values) << c.rule;
  }
  const auto problem = [&](const Tensor& tensor, const std::string& rule) {
    return mapped({{"t", tensor}}, R"({"from": "t", "to": "n", )" + rule + "}", "n").problem;
  };
  const std::string where = "map.json: rule 1 (\"t\"): t: expected ";
  EXPECT_EQ(problem(table, R"("skip": 5)"), where + "at least 6 rows, got [5, 2]");
  EXPECT_EQ(problem(table, R"("rows": 6)"), where + "at least 6 rows, got [5, 2]");
  EXPECT_EQ(problem(table, R"("skip": 3, "rows": 3)"), where + "at least 6 rows, got [5, 2]");
  EXPECT_EQ(problem(Tensor::full({}, 1), R"("skip": 1)"), where + "at least 2 rows, got []");
}

TEST(MappedTensors, EqualPartsOfASourceAreCutOut) {
  const Named file{{"t", counting_tensor({6, 2})}};
  const std::string rules = R"({"from": "t", "to": ["q", "", "v"], "split": [1, 3, 2]})";
  EXPECT_EQ(mapped(file, rules, "q").values, (Values{0, 1}));
  EXPECT_EQ(mapped(file, rules, "v").values, (Values{8, 9, 10, 11}));
  EXPECT_EQ(mapped(file, rules, "v").shape, (Shape{2, 2}));
  const Checkpoint checkpoint = *checkpoint_of(file);
  const MappedTensors all(checkpoint, map_of(rules), {});
  EXPECT_EQ(all.all().size(), 2u) << "a dropped part is no tensor";
  EXPECT_ERROR(mapped({{"t", counting_tensor({7, 2})}}, rules, "v").problem, "map.json: rule 1 (\"t\"): t", "[7, 2]");
  EXPECT_ERROR(mapped({{"t", Tensor::full({}, 1)}}, rules, "q").problem, "map.json: rule 1 (\"t\"): t", "[]");
  const std::string with_skip = R"({"from": "t", "to": ["a", "b"], "split": [1, 2], "skip": 2, "rows": 3})";
  EXPECT_EQ(mapped(file, with_skip, "a").values, (Values{4, 5}));
  EXPECT_EQ(mapped(file, with_skip, "b").values, (Values{6, 7, 8, 9}));
}

TEST(MappedTensors, PartsAreJoinedInTheirOrder) {
  const std::string rules = R"({"from": "a", "to": "n", "part": [1, 3]}, {"from": "b", "to": "n", "part": [2, 3]},
                               {"from": "c", "to": "n", "part": [0, 3], "rearrange": "x y -> y x"})";
  const Result got = mapped(
      {{"a", counting_tensor({1, 2})}, {"b", counting_tensor({3, 2})}, {"c", counting_tensor({2, 1})}}, rules, "n");
  EXPECT_EQ(got.shape, (Shape{5, 2}));
  EXPECT_EQ(got.values, (Values{0, 1, 0, 1, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(mapped({{"a", counting_tensor({1, 2})}, {"b", counting_tensor({3, 2})}}, rules, "n").problem,
            "part 1 of 3 is missing");
  EXPECT_EQ(mapped({{"a", counting_tensor({1, 2})}, {"c", counting_tensor({2, 1})}}, rules, "n").problem,
            "part 3 of 3 is missing");
  EXPECT_EQ(mapped({{"b", counting_tensor({1, 2})}, {"c", counting_tensor({2, 1})}}, rules, "n").problem,
            "part 2 of 3 is missing");
  EXPECT_ERROR(mapped({{"a", counting_tensor({1, 3})}, {"b", counting_tensor({3, 2})}, {"c", counting_tensor({2, 1})}},
                      rules, "n")
                   .problem,
               "a", "[1, 3]");
  EXPECT_ERROR(
      mapped({{"a", counting_tensor({1, 2})}, {"b", counting_tensor({2})}, {"c", counting_tensor({2, 1})}}, rules, "n")
          .problem,
      "b", "[2]");
  const std::string scalars = R"({"from": "a", "to": "n", "part": [0, 2]}, {"from": "b", "to": "n", "part": [1, 2]})";
  EXPECT_ERROR(mapped({{"a", Tensor::full({}, 1)}, {"b", Tensor::full({}, 1)}}, scalars, "n").problem, "b", "[]");
}

TEST(MappedTensors, TwoTensorsOfOneNameAreAnErrorThatNamesThem) {
  const auto error = [](const std::string& rules, const Named& tensors) {
    const Checkpoint file = *checkpoint_of(tensors);
    const std::string text = testing::error_of([&] { MappedTensors(file, map_of(rules), {}); });
    EXPECT_TRUE(text.starts_with(file.path() + ": expected one tensor for n (key map own), got two: ")) << text;
    return text.substr(text.find("two: "));
  };
  const Tensor t = counting_tensor({2});
  EXPECT_EQ(error(R"({"from": "a", "to": "n"}, {"from": "b", "to": "n"})", {{"a", t}, {"b", t}}), "two: a and b");
  EXPECT_EQ(error(R"({"from": "a", "to": "n"})", {{"a", t}, {"n", t}}), "two: a and n");
  EXPECT_EQ(error(R"({"from": "[ab]", "to": "n", "part": [1, 2]})", {{"a", t}, {"b", t}}), "two: a and b");
  EXPECT_EQ(error(R"({"from": "a", "to": "n", "part": [0, 2]}, {"from": "b", "to": "n", "part": [1, 3]})",
                  {{"a", t}, {"b", t}}),
            "two: a and b");
}

TEST(MappedTensors, SizesOfAxesAreNumbersOrFields) {
  const Named file{{"t", counting_tensor({12})}};
  const std::string number = R"({"from": "t", "to": "n", "rearrange": "(a b) -> a b", "sizes": {"a": 3}})",
                    field = R"({"from": "t", "to": "n", "rearrange": "(a b) -> a b", "sizes": {"a": "depth", "b": 2}})";
  EXPECT_EQ(mapped(file, number, "n").shape, (Shape{3, 4}));
  EXPECT_EQ(mapped(file, field, "n", {{"depth", 6}, {"width", 4}}).shape, (Shape{6, 2}));
  EXPECT_ERROR(mapped(file, field, "n", {{"width", 4}}).problem, "map.json: rule 1 (\"t\")",
               "a checkpoint without configuration");
  EXPECT_ERROR(mapped(file, field, "n", {{"depth", 5}}).problem, "map.json: rule 1 (\"t\"): t", "[12]");
}

TEST(MappedTensors, FloatingTypesAreConvertedAndOthersKept) {
  const Checkpoint file = *checkpoint_of({{"half", counting_tensor({3}, DType::f16)},
                                          {"double", counting_tensor({3}, DType::f64)},
                                          {"int", counting_tensor({3}, DType::i32)},
                                          {"i8_a", counting_tensor({2}, DType::i8)},
                                          {"i8_b", counting_tensor({3}, DType::i8)},
                                          {"bf_a", counting_tensor({2}, DType::bf16)},
                                          {"bf_b", counting_tensor({3}, DType::f64)},
                                          {"none", Tensor::zeros({0, 3})}});
  const MappedTensors all(
      file, map_of(R"({"from": "i8_a", "to": "i8", "part": [0, 2]}, {"from": "i8_b", "to": "i8", "part": [1, 2]},
                                    {"from": "bf_a", "to": "bf", "part": [0, 2]}, {"from": "bf_b", "to": "bf", "part": [1, 2]},
                                    {"from": "x.*", "drop": true}, {"from": "int", "to": "of_int"})"),
      {});
  EXPECT_EQ(all.all().size(), 5u) << "a tensor without elements is ignored";
  const auto read = [&](const char* name, DType dtype) { return all.read(file, all.all().at(name), dtype); };
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    for (const char* name : {"half", "double", "bf"}) EXPECT_EQ(read(name, dtype).dtype(), dtype) << name;
    EXPECT_EQ(read("of_int", dtype).dtype(), DType::i32);
    EXPECT_EQ(read("i8", dtype).dtype(), DType::i8);
  }
  EXPECT_EQ(values_of(read("bf", DType::f32)), (Values{0, 1, 0, 1, 2}));
  EXPECT_EQ(values_of(read("i8", DType::f32)), (Values{0, 1, 0, 1, 2}));
  EXPECT_EQ(values_of(read("half", DType::f64)), (Values{0, 1, 2}));
  EXPECT_EQ(read("double", DType::f64).raw(), file.tensor("double").raw()) << "a view";
  EXPECT_EQ(all.all().at("of_int").parts[0].source, "int");
  EXPECT_EQ(all.all().at("half").parts[0].rule, nullptr);
}

TEST(MappedTensors, ObjectsAreTensorsWithAProblem) {
  testing::TorchSave save;
  const std::string array = testing::pickled_call("numpy", "ndarray");
  const std::string dict = "}(" + testing::pickled_text("w") + save.tensor(counting_tensor({2})) +
                           testing::pickled_text("gone") + array + testing::pickled_text("a") + array +
                           testing::pickled_text("kept") + array + "u";
  const std::string bytes = save.file(dict);
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  const Checkpoint file = Checkpoint::open(FileBytes::hold({data, data + bytes.size()}, "file.pth"));
  const MappedTensors all(file, map_of(R"({"from": "gone", "drop": true}, {"from": "a", "to": "b"})"), {});
  ASSERT_EQ(all.all().size(), 3u);
  for (const auto& [name, source] : {std::pair("b", "a"), {"kept", "kept"}}) {
    const MappedTensor& tensor = all.all().at(name);
    EXPECT_TRUE(tensor.object);
    EXPECT_EQ(tensor.problem, "expected a tensor, got an object of numpy.ndarray");
    ASSERT_EQ(tensor.parts.size(), 1u);
    EXPECT_EQ(tensor.parts[0].source, source);
  }
  EXPECT_FALSE(all.all().at("w").object);
}

}  // namespace
}  // namespace vitrail::weights
