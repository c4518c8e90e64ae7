// SPDX-License-Identifier: Apache-2.0
// What the program says about models, labels and preprocessing options.
#include <cmath>
#include <fstream>

#include "tests/apps/cli_fixture.h"
#include "vitrail/base/npy.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

ProgramResult classify(std::vector<std::string> arguments, const fs::path& images) {
  arguments.insert(arguments.begin(), "classify");
  arguments.push_back(images.string());
  return run_program(arguments);
}

void expect_error(const ProgramResult& result, const std::string& part) {
  EXPECT_NE(result.status, 0) << result.err;
  EXPECT_TRUE(result.err.starts_with("vitrail: error: ")) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
}

TEST(ModelOptions, PreprocessingOutOfRangeIsAnError) {
  const auto images = image_folder(1);
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--crop-pct", "90"}, "--crop-pct: expected a fraction from 0.01 to 1, got 90"},
      {{"--crop-pct", "-1"}, "--crop-pct"},
      {{"--crop-pct", "0"}, "--crop-pct"},
      {{"--crop-pct", "nan"}, "--crop-pct"},
      {{"--crop-pct", "inf"}, "--crop-pct"},
      {{"--mean", "123.675,116.28,103.53", "--std", "58.395,57.12,57.375"}, "divide by 255: 0.485,0.456,0.406"},
      {{"--mean", "nan"}, "--mean"},
      {{"--mean", "0.5,0.5"}, "--mean: expected 1 or 3 numbers"},
      {{"--std", "0"}, "--std"},
      {{"--std", "-0.5"}, "--std"}};
  for (const auto& [options, part] : cases) {
    std::vector<std::string> arguments{"-m", small_model()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    expect_error(classify(arguments, images), part);
  }
  EXPECT_EQ(classify({"-m", small_model(), "--crop-pct", "0.9", "--mean", "0.5", "--std", "0.5"}, images).status, 0);
}

TEST(ModelOptions, SeveralLabelsHaveTheSigmoidOfTheirLogits) {
  const auto images = image_folder(2);
  const fs::path model = with_config("timm_token", [](auto& c) { c["problem_type"] = "multi_label_classification"; });
  const std::string logits = (images / "logits.npy").string();
  const ProgramResult result =
      classify({"-m", model.string(), "--format", "json", "--top", "10", "--logits", logits}, images);
  ASSERT_EQ(result.status, 0) << result.err;
  const NpyArray rows = read_npy(logits);
  const auto objects = json_lines(result.out);
  for (size_t image = 0; image < 2; ++image) {
    EXPECT_EQ(objects[image]["activation"], "sigmoid");
    ASSERT_EQ(objects[image]["predictions"].size(), 10u);
    double before = 1;
    for (const auto& p : objects[image]["predictions"]) {
      const double logit = rows.f32[image * 10 + p["index"].get<size_t>()], probability = p["probability"];
      EXPECT_NEAR(probability, 1 / (1 + std::exp(-logit)), 1e-7);
      EXPECT_LE(probability, before);
      before = probability;
    }
  }
}

TEST(ModelOptions, SoftmaxIsNamedForModelsThatChooseOneClass) {
  const auto images = image_folder(1);
  const ProgramResult result = classify({"-m", small_model(), "--format", "json", "--top", "10"}, images);
  const auto object = json_lines(result.out).at(0);
  EXPECT_EQ(object["activation"], "softmax");
  double sum = 0;
  for (const auto& p : object["predictions"]) sum += p["probability"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-6);
}

// A head with one class: the first row of the fixture's head.
TEST(ModelOptions, OneClassHasTheSigmoidOfItsLogit) {
  const auto images = image_folder(1);
  const fs::path model = with_config("timm_token", [](auto& c) {
    c["num_classes"] = 1;
    c["model_args"].erase("num_classes");
  });
  const weights::Checkpoint original = weights::Checkpoint::open(model / "model.safetensors");
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const weights::TensorInfo& info : original.tensors()) {
    const Tensor tensor = original.tensor(info.name);
    tensors.emplace_back(info.name, info.name.starts_with("head.") ? tensor.narrow(0, 0, 1).contiguous() : tensor);
  }
  weights::write_safetensors(model / "model.safetensors", tensors, {});
  const std::string logits = (images / "logits.npy").string();
  const ProgramResult result = classify({"-m", model.string(), "--format", "json", "--logits", logits}, images);
  ASSERT_EQ(result.status, 0) << result.err;
  const auto object = json_lines(result.out).at(0);
  EXPECT_EQ(object["activation"], "sigmoid");
  EXPECT_NEAR(object["predictions"][0]["probability"].get<double>(),
              1 / (1 + std::exp(-double{read_npy(logits).f32[0]})), 1e-7);
  expect_error(run_program({"eval", "-m", model.string(), images.string()}), "a head with one class");
}

TEST(ModelOptions, LabelFilesAreReadInEveryForm) {
  const auto images = image_folder(1);
  std::string lines, crlf, cr, ids, names, label2id, keras;
  for (int i = 0; i < 10; ++i) {
    const std::string name = "n" + std::to_string(i), index = std::to_string(i), comma = i == 0 ? "" : ", ";
    lines += name + "\n";
    crlf += name + "\r\n";
    cr += name + "\r";
    ids = "\"" + index + "\": \"" + name + "\"" + (ids.empty() ? "" : ", " + ids);  // in descending order
    names += comma + "\"" + name + "\"";
    label2id += comma + "\"" + name + "\": " + index;
    keras += comma + "\"" + index + "\": [\"x" + index + "\", \"" + name + "\"]";
  }
  const std::string files[] = {lines,
                               "\xef\xbb\xbf" + lines,
                               lines + "\n",
                               lines + " \n\n\n",
                               crlf,
                               "\xef\xbb\xbf" + crlf + "\r\n",
                               cr,
                               lines.substr(0, 29),
                               "\n" + lines,
                               "{" + ids + "}",
                               "\n {" + ids + "}",
                               "[" + names + "]",
                               "{" + keras + "}",
                               "{" + label2id + "}",
                               "{\"id2label\": {" + ids + "}, \"x\": 1}"};
  const std::string file = (images / "labels.txt").string();
  for (const std::string& text : files) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
    const ProgramResult result =
        classify({"-m", small_model(), "--labels", file, "--format", "json", "--top", "10"}, images / "a.png");
    ASSERT_EQ(result.status, 0) << result.err << text;
    const auto object = json_lines(result.out).at(0);
    ASSERT_EQ(object["predictions"].size(), 10u);
    for (const auto& p : object["predictions"]) {
      EXPECT_EQ(p["label"], "n" + std::to_string(p["index"].get<int>())) << text;
    }
  }
}

TEST(ModelOptions, OtherLabelFilesAreErrors) {
  const auto images = image_folder(1);
  const std::string file = (images / "labels.txt").string();
  const std::pair<std::string, const char*> cases[] = {{"a\nb\n", "expected 10 class names, one per line, got 2"},
                                                       {"{\"0\": \"a\"}", "got 1"},
                                                       {"{\"1\": \"a\"}", "each class from 0 to 0 once"},
                                                       {"{\"0\": ", "labels.txt: expected JSON, got"},
                                                       {std::string("\xff\xfe"
                                                                    "a\0",
                                                                    4),
                                                        "UTF-16"},
                                                       {"", "got 0"}};
  for (const auto& [text, part] : cases) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
    expect_error(classify({"-m", small_model(), "--labels", file}, images / "a.png"), part);
  }
  expect_error(classify({"-m", small_model(), "--labels", std::string(300, 'x')}, images / "a.png"),
               "cannot be opened: File name too long");
}

TEST(ModelOptions, EveryCommandReportsAModelPathThatCannotBeLookedAt) {
  const auto images = image_folder(1);
  const std::string image = (images / "a.png").string(), model(300, 'x');
  const std::vector<std::string> commands[] = {{"classify", "-m", model, image},
                                               {"embed", "-m", model, image, "-o", (images / "e.npy").string()},
                                               {"eval", "-m", model, images.string()},
                                               {"inspect", "-m", model},
                                               {"bench", model},
                                               {"attention", "-m", model, image, "-o", (images / "a2.png").string()},
                                               {"convert", model, "-o", (images / "out").string()}};
  for (const auto& command : commands) expect_error(run_program(command), "cannot be opened: File name too long");
}

TEST(ModelOptions, Fp16KeepsTensorsBeyondItsRangeInFp32) {
  const fs::path folder = scratch_folder(), model = with_config("timm_token", [](auto&) {});
  const weights::Checkpoint original = weights::Checkpoint::open(model / "model.safetensors");
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const weights::TensorInfo& info : original.tensors()) {
    Tensor tensor = Tensor::empty(info.shape);
    tensor.copy_(original.tensor(info.name));
    if (info.name == "head.bias") tensor.data<float>()[2] = 70000.f;
    tensors.emplace_back(info.name, tensor);
  }
  weights::write_safetensors(model / "model.safetensors", tensors, {});
  const ProgramResult result =
      run_program({"convert", model.string(), "--dtype", "fp16", "-o", (folder / "half").string()});
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string warning =
      "warning: 1 tensor kept in fp32, with values beyond the range of fp16 (65504): head.bias\n";
  EXPECT_NE(result.err.find(warning), std::string::npos) << result.err;
  const weights::Checkpoint half = weights::Checkpoint::open(folder / "half/model.safetensors");
  EXPECT_EQ(half.info("head.bias").dtype, DType::f32);
  EXPECT_EQ(half.tensor("head.bias").data<float>()[2], 70000.f);
  EXPECT_EQ(half.info("head.weight").dtype, DType::f16);
  EXPECT_EQ(run_program({"inspect", "-m", (folder / "half").string()}).status, 0);
}

}  // namespace
}  // namespace vitrail::testing
