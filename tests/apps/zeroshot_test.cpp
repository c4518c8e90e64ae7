// SPDX-License-Identifier: Apache-2.0
// `vitrail zeroshot`, `embed --text` and `eval --zeroshot`, compared with the library.
#include <fstream>

#include "tests/apps/cli_fixture.h"
#include "tests/support/golden.h"
#include "vitrail/base/npy.h"
#include "vitrail/base/read_file.h"
#include "vitrail/pipeline/dual_model.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

std::string clip() { return fixture("models/hf_clip").string(); }

Tensor probabilities_of(const DualModel& model, const fs::path& image, const Tensor& labels) {
  return model.probabilities(model.logits(model.embed_image(model.images().read(image)), labels));
}

TEST(ZeroShot, ProbabilitiesAreTheLibrarysAndSumToOne) {
  const fs::path folder = image_folder(3);
  const ProgramResult result =
      run_program({"zeroshot", "-m", clip(), folder, "--labels", "cat, dog,bone", "--format", "json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto objects = json_lines(result.out);
  ASSERT_EQ(objects.size(), 3u);
  const DualModel model(clip());
  const Tensor labels = model.embed_labels({"cat", "dog", "bone"}, {"{}"});
  for (const auto& object : objects) {
    const Tensor want = probabilities_of(model, object["path"].get<std::string>(), labels);
    EXPECT_EQ(object["activation"], "softmax");
    double sum = 0, before = 1;
    for (const auto& prediction : object["predictions"]) {
      const auto probability = prediction["probability"].get<double>();
      EXPECT_NEAR(probability, want.data<float>()[prediction["index"].get<int>()], 1e-6);
      EXPECT_LE(probability, before);
      sum += before = probability;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(ZeroShot, ABadImageIsReportedInItsPlace) {
  const fs::path folder = image_folder(2);
  std::ofstream(folder / "a.png", std::ios::trunc) << "not an image";
  const ProgramResult result =
      run_program({"zeroshot", "-m", clip(), folder, "--labels", "cat,dog", "--format", "json"});
  EXPECT_EQ(result.status, 1);
  const auto objects = json_lines(result.out);
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_TRUE(objects[0].contains("error"));
  EXPECT_TRUE(objects[1].contains("predictions"));
}

TEST(ZeroShot, ErrorsNameWhatIsMissing) {
  const fs::path image = image_folder(1) / "a.png";
  const auto error_with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"zeroshot", image.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_NE(result.status, 0);
    return result.err;
  };
  EXPECT_TRUE(contains(error_with({"-m", small_model(), "--labels", "cat"}), "a dual model with a text tower"));
  EXPECT_TRUE(contains(error_with({"-m", clip(), "--labels", "cat,,dog"}),
                       "--labels: expected a file, or names with commas between them"));
  EXPECT_TRUE(contains(error_with({"-m", clip(), "--labels", "cat", "--template", "a photo"}), "{} where the label"));
  EXPECT_TRUE(contains(error_with({"-m", clip(), "--labels", "a\xff"}), "expected UTF-8"));
}

// Anything that is not read as a file would be the only label, with a probability of 100 %.
TEST(ZeroShot, LabelsMayBeAnyKindOfFile) {
  const fs::path image = image_folder(1) / "a.png", folder = scratch_folder();
  const auto labels_from = [&](const std::string& labels) {
    const ProgramResult result = run_program({"zeroshot", "-m", clip(), image, "--format", "json", "--labels", labels});
    std::vector<std::string> names(2);
    if (result.status != 0) return result.err;
    const nlohmann::json predictions = json_lines(result.out).at(0)["predictions"];
    for (const auto& prediction : predictions)
      names.at(prediction["index"].get<size_t>()) = prediction["label"].get<std::string>();
    return names[0] + "|" + names[1];
  };
  std::ofstream(folder / "l.json") << "[\"cat\", \"dog\"]";
  std::ofstream(folder / "l.txt") << "\xef\xbb\xbf"
                                     "cat\r\n\r\ndog";
  std::ofstream(folder / "cr.txt") << "cat\rdog\r";
  for (const char* name : {"l.json", "l.txt", "cr.txt"}) EXPECT_EQ(labels_from((folder / name).string()), "cat|dog");
  EXPECT_EQ(labels_from(R"(["cat", "dog"])"), "cat|dog");
  EXPECT_EQ(labels_from(R"({"1": "dog", "0": "cat"})"), "cat|dog");
  EXPECT_TRUE(contains(labels_from("[cat, dog]"), "--labels: expected a file, or JSON")) << labels_from("[cat, dog]");
  for (const std::string labels : {"absent.txt", "names/absent.json"})
    EXPECT_TRUE(contains(labels_from(labels), labels + ": expected a text file")) << labels_from(labels);
  EXPECT_TRUE(contains(labels_from("/dev/null"), "expected at least one name, got none"));
  EXPECT_EQ(run_program({"embed", "-m", clip(), "--text", "absent.txt", "-o", folder / "x.npy"}).status, 1);
}

TEST(ZeroShot, StandardInputHasLabelsOrImages) {
  const fs::path image = image_folder(1) / "a.png";
  const auto from = [&](const std::string& input, const std::string& labels) {
    return run_program({"zeroshot", "-m", clip(), image, "--format", "json", "--labels", labels}, input).out;
  };
  EXPECT_EQ(from("cat\ndog\n", "-"), from("", "cat,dog"));
  const ProgramResult both = run_program({"zeroshot", "-m", clip(), "-", "--labels", "-"}, image.string() + "\n");
  EXPECT_NE(both.status, 0);
  EXPECT_TRUE(contains(both.err, "standard input has the images")) << both.err;
}

TEST(ZeroShot, OneLabelIsAWarning) {
  const fs::path image = image_folder(1) / "a.png";
  EXPECT_TRUE(contains(run_program({"zeroshot", "-m", clip(), image, "--labels", "cat"}).err, "always 100 %"));
  EXPECT_EQ(run_program({"zeroshot", "-m", clip(), image, "--labels", "cat,dog"}).err, "");
}

TEST(EmbedText, RowsAreTheTextsEmbeddings) {
  const fs::path texts = scratch_folder() / "texts.txt", output = scratch_folder() / "texts.npy";
  std::ofstream(texts) << "a photo of a cat\nthe dog\n";
  const ProgramResult result = run_program({"embed", "-m", clip(), "--text", texts, "-o", output, "--normalize"});
  ASSERT_EQ(result.status, 0) << result.err;
  const NpyArray rows = read_npy(output);
  ASSERT_EQ(rows.shape, (std::vector<int64_t>{2, 10}));
  const Tensor want = DualModel(clip()).embed_texts({"a photo of a cat", "the dog"});
  for (int64_t i = 0; i < 20; ++i) EXPECT_NEAR(rows.f32[static_cast<size_t>(i)], want.data<float>()[i], 1e-6);
}

// Row i is line i in each kind of output, from a file and from standard input.
TEST(EmbedText, ABlankLineHasARowOfItsOwn) {
  const fs::path folder = scratch_folder();
  const std::string lines =
      "\xef\xbb\xbf"
      "a cat\n\r\n \nthe dog\n\n";
  std::ofstream(folder / "texts.txt") << lines;
  const Tensor want = DualModel(clip()).embed_texts({"a cat", "the dog"}, false);
  const auto expect_rows = [&](const std::string& text, const fs::path& output, const std::string& input) {
    const ProgramResult result = run_program({"embed", "-m", clip(), "--text", text, "-o", output, "--force"}, input);
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(contains(result.err, "3 blank lines, whose rows are NaN")) << result.err;
    if (output.extension() != ".npy") return;
    const NpyArray rows = read_npy(output);
    ASSERT_EQ(rows.shape, (std::vector<int64_t>{5, 10}));
    for (size_t row = 0; row < 5; ++row) {
      const bool blank = row != 0 && row != 3;
      for (size_t i = 0; i < 10; ++i) {
        const float got = rows.f32[row * 10 + i];
        EXPECT_EQ(std::isnan(got), blank) << row;
        if (blank) continue;
        EXPECT_NEAR(got, want.data<float>()[(row == 0 ? 0 : 10) + i], 1e-6);
      }
    }
  };
  expect_rows((folder / "texts.txt").string(), folder / "rows.npy", "");
  expect_rows("-", folder / "rows.npy", lines);
  expect_rows("-", folder / "rows.csv", lines);
  const std::string table = read_text_file(folder / "rows.csv");
  EXPECT_EQ(std::ranges::count(table, '\n'), 6) << table;
  EXPECT_TRUE(contains(run_program({"embed", "-m", clip(), "--text", "-", "-o", folder / "x.npy"}, "\n\n").err,
                       "expected at least one line of text, got none"));
}

// One default template everywhere: the labels are the texts.
TEST(ZeroShot, TheDefaultTemplateIsTheLabel) {
  const fs::path root = scratch_folder(), logits = scratch_folder() / "logits.npy", images = image_folder(2);
  for (const auto& [name, file] : {std::pair("cat", "a.png"), std::pair("dog", "b.png")}) {
    fs::create_directories(root / name);
    fs::copy_file(images / file, root / name / file);
  }
  const auto predicted = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"zeroshot", "-m", clip(), images, "--labels", "cat,dog", "--format", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments).out;
  };
  const auto evaluated = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"eval",    "-m",       clip(),          root,     "--zeroshot",
                                       "--quiet", "--logits", logits.string(), "--force"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(run_program(arguments).status, 0);
    return read_text_file(logits);
  };
  const std::vector<std::string> label{"--template", "{}"}, photo{"--template", "a photo of a {}"};
  EXPECT_EQ(predicted({}), predicted(label));
  EXPECT_NE(predicted({}), predicted(photo));
  EXPECT_EQ(evaluated({}), evaluated(label));
  EXPECT_NE(evaluated({}), evaluated(photo));
}

TEST(EmbedText, NeedsTextsOrImagesButNotBoth) {
  const fs::path output = scratch_folder() / "rows.npy";
  EXPECT_NE(run_program({"embed", "-m", clip(), "-o", output}).status, 0);
  const std::string image = (image_folder(1) / "a.png").string();
  EXPECT_NE(run_program({"embed", "-m", clip(), image, "--text", "a cat", "-o", output}).status, 0);
  const ProgramResult alone = run_program({"embed", "-m", small_model(), "--text", "a cat", "-o", output});
  EXPECT_TRUE(contains(alone.err, "a dual model with a text tower")) << alone.err;
  const ProgramResult empty = run_program({"embed", "-m", clip(), "--text", "", "-o", output});
  EXPECT_EQ(empty.status, 1);
  EXPECT_TRUE(contains(empty.err, "text 0: expected words, got \"\"")) << empty.err;
}

// The folder has both towers, in the form of its source, and the files of the tokenizer.
TEST(ConvertDual, KeepsTheTextTowerAndTheTokenizer) {
  const fs::path folder = scratch_folder(), image = image_folder(1) / "a.png";
  for (const std::string name : {"hf_clip", "open_clip"}) {
    const fs::path source = fixture("models/" + name);
    const DualModel want(source);
    const Tensor texts = want.embed_texts({"a photo of a cat"}), images = want.embed_image(want.images().read(image));
    for (const std::string dtype : {"fp32", "fp16"}) {
      const fs::path copy = folder / (name + dtype);
      const ProgramResult result = run_program({"convert", source, "-o", copy, "--dtype", dtype});
      ASSERT_EQ(result.status, 0) << result.err;
      EXPECT_FALSE(contains(result.err, "left out")) << result.err;
      const DualModel got(copy);
      // Weights in fp16 are rounded to 2⁻¹¹; the errors of some ten layers add, in embeddings of length 1.
      const double tolerance = dtype == "fp32" ? 0 : 10.0 / 2048;
      EXPECT_TRUE(close(got.embed_texts({"a photo of a cat"}), texts, tolerance, 0)) << name << dtype;
      EXPECT_TRUE(close(got.embed_image(got.images().read(image)), images, tolerance, 0)) << name << dtype;
      EXPECT_EQ(got.logits(images, texts).item<float>(), want.logits(images, texts).item<float>());
    }
    EXPECT_LT(fs::file_size(folder / (name + "fp16") / "model.safetensors"),
              0.6 * static_cast<double>(fs::file_size(folder / (name + "fp32") / "model.safetensors")));
  }
}

TEST(ConvertDual, WhatItsFormCannotHaveLeavesTheImageTowerAndSaysWhy) {
  const fs::path folder = scratch_folder();
  for (const auto& [option, value] :
       {std::pair("--dtype", "int8"), {"--image-size", "32"}, {"--mean", "0.5,0.5,0.5"}}) {
    const ProgramResult result = run_program({"convert", clip(), "-o", folder / option, option, value});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(contains(result.err, "the text tower is left out")) << result.err;
    EXPECT_EQ(contains(result.err, "--dtype fp16 keeps"), std::string(value) == "int8") << result.err;
  }
}

// The class folders name the classes; the accuracy is that of the largest probability.
TEST(EvalZeroShot, AccuracyIsThatOfTheLargestProbability) {
  const fs::path root = scratch_folder(), images = image_folder(4);
  const DualModel model(clip());
  const Tensor labels = model.embed_labels({"cat", "dog"});
  int right = 0;
  for (int i = 0; i < 4; ++i) {
    const fs::path file = images / (std::string(1, static_cast<char>('a' + i)) + ".png");
    const fs::path folder = root / (i < 2 ? "cat" : "dog");
    fs::create_directories(folder);
    fs::copy_file(file, folder / file.filename());
    const Tensor probabilities = probabilities_of(model, file, labels);
    right += (probabilities.data<float>()[0] > probabilities.data<float>()[1]) == (i < 2);
  }
  const ProgramResult result = run_program({"eval", "-m", clip(), root, "--zeroshot", "--format", "json", "--quiet"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NEAR(json_lines(result.out).at(0)["top1"].get<double>(), right / 4.0, 1e-9);
}

}  // namespace
}  // namespace vitrail::testing
