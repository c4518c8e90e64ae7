// SPDX-License-Identifier: Apache-2.0
// What eval, knn and classify print of each class and image, with the names of classes and with failures.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/apps/shell.h"
#include "tests/support/golden.h"
#include "vitrail/base/npy.h"
#include "vitrail/data/metrics/classification_report.h"
#include "vitrail/data/metrics/multi_label_report.h"
#include "vitrail/image/decode.h"
#include "vitrail/pipeline/attention_view.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path names_file(const std::vector<std::string>& names) {
  const fs::path file = scratch_folder() / "names.txt";
  std::ofstream out(file);
  for (const std::string& name : names) out << name << "\n";
  return file;
}

void expect_metrics(const json& got, const data::ClassMetrics& want) {
  EXPECT_EQ(got["precision"], want.precision);
  EXPECT_EQ(got["recall"], want.recall);
  EXPECT_EQ(got["f1"], want.f1);
  EXPECT_EQ(got["images"], want.support);
}

void expect_interval(const json& got, double fraction, int64_t images) {
  const data::Interval interval = data::wilson_interval(fraction, images);
  EXPECT_EQ(got, (json{interval.low, interval.high}));
}

TEST(EvalJson, HasEachNumberOfTheReport) {
  const std::vector<std::string> names{"a", "b", "c, d", "größe", "e", "f", "g", "h", "i", "j"};
  const fs::path root = folders_of({{"a", 4}, {"c, d", 2}, {"größe", 1}}, 40), logits_file = scratch_folder() / "l.npy",
                 labels = names_file(names);
  const json object = json_of(
      {"eval", "-m", small_model(), root, "--labels", labels, "--logits", logits_file, "--format", "json", "--quiet"});
  const std::vector<float> logits = read_npy(logits_file).f32;
  data::ClassificationReport report(10);
  const int64_t of_rows[] = {0, 0, 0, 0, 2, 2, 3};
  for (size_t i = 0; i < 7; ++i) report.add({logits.data() + 10 * i, 10}, of_rows[i], "image");
  EXPECT_EQ(object["images"], 7);
  EXPECT_EQ(object["top1"], report.top1());
  EXPECT_EQ(object["top5"], report.top5());
  EXPECT_EQ(object["calibration_error"], report.calibration_error());
  expect_interval(object["top1_interval"], report.top1(), 7);
  expect_interval(object["top5_interval"], report.top5(), 7);
  expect_metrics(object["macro"], report.macro_average());
  expect_metrics(object["weighted"], report.weighted_average());
  ASSERT_EQ(object["classes"].size(), report.classes().size());
  for (size_t i = 0; i < object["classes"].size(); ++i) {
    const json& entry = object["classes"][i];
    EXPECT_EQ(entry["index"], report.classes()[i]);
    EXPECT_EQ(entry["label"], names[static_cast<size_t>(report.classes()[i])]);
    expect_metrics(entry, report.of_class(report.classes()[i]));
  }
  json confusion = json::array();
  for (const auto& [pair, count] : report.confusion()) confusion.push_back({pair.first, pair.second, count});
  EXPECT_EQ(object["confusion"], confusion);
  // Without names a class has its index alone.
  const fs::path numbers = folders_of({{"0", 1}, {"7", 1}}, 40);
  EXPECT_FALSE(
      json_of({"eval", "-m", small_model(), numbers, "--format", "json", "--quiet"})["classes"][0].contains("label"));
}

// Names may have letters of several bytes, which take one column, and commas, which CSV quotes.
TEST(EvalTable, AlignsNamesByTheirLetters) {
  const std::vector<std::string> names{"ä very long naïve größe", "b", "c, \"d\"", "x", "e", "f", "g", "h", "i", "j"};
  const fs::path root = folders_of({{names[0], 2}, {"b", 1}, {names[2], 1}}, 40), files = scratch_folder();
  const std::string out = run({"eval", "-m", small_model(), root, "--labels", names_file(names), "--predictions",
                               files / "p.csv", "--logits", files / "l.npy", "--quiet"})
                              .out;
  const size_t width = 23;  // letters of the longest name
  const auto columns = [](const std::string& text) {
    return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
  };
  size_t rows = 0;
  for (const std::string& line : lines_of(out)) {
    if (!line.starts_with(names[0] + "  ")) continue;
    ++rows;
    EXPECT_TRUE(line.substr(names[0].size()).starts_with(rows == 1 ? "        2  " : "      ")) << line;
  }
  EXPECT_EQ(rows, 2U) << "in the table and in the matrix" << out;
  for (const std::string& line : lines_of(out)) {
    if (line.starts_with("class ")) {
      EXPECT_EQ(line, "class" + std::string(width - 5, ' ') + "   images  precision  recall      F1");
    }
    if (line.starts_with("weighted average ")) {
      EXPECT_EQ(line.substr(0, width + 9), "weighted average" + std::string(width - 16, ' ') + "        4");
      EXPECT_EQ(columns(line), width + 2 + 7 + 2 + 9 + 2 + 6 + 2 + 6);
    }
  }
  const std::vector<float> logits = read_npy(files / "l.npy").f32;
  const std::vector<std::string> csv = lines_of(content_of(files / "p.csv"));
  ASSERT_EQ(csv.size(), 5U);
  const auto quoted = [&](size_t name) { return name == 2 ? std::string("\"c, \"\"d\"\"\"") : names[name]; };
  // Folders in the order of their paths: "b", "c, …" and the long one.
  const size_t labels[] = {1, 2, 0, 0};
  for (size_t i = 0; i < 4; ++i) {
    const auto* row = logits.data() + 10 * i;
    const auto best = static_cast<size_t>(std::max_element(row, row + 10) - row);
    EXPECT_TRUE(contains(csv[i + 1], ".png" + std::string(labels[i] == 2 ? "\"" : "") + "," + quoted(labels[i]) + "," +
                                         quoted(best) + ",0."))
        << csv[i + 1];
  }
}

// The five best of five classes are all of them.
TEST(EvalTable, TellsTheTop5OfMoreThanFiveClasses) {
  for (const int classes : {5, 6}) {
    std::map<std::string, int> counts;
    for (int i = 0; i < classes; ++i) counts["class" + std::to_string(i)] = 1;
    const std::string out =
        run({"eval", "-m", fixture("models/hf_clip"), folders_of(counts, 40), "--zeroshot", "--quiet"}).out;
    EXPECT_TRUE(out.starts_with("top-1 ")) << out;
    EXPECT_EQ(contains(out, "\ntop-5 "), classes == 6) << out;
  }
}

// A matrix of twenty classes fits a terminal; of more, the pairs are listed.
TEST(EvalTable, HasAMatrixOfAtMostTwentyClasses) {
  for (const int classes : {20, 21}) {
    std::map<std::string, int> counts;
    for (int i = 0; i < classes; ++i) counts["class" + std::to_string(10 + i)] = 1;
    const std::string out =
        run({"eval", "-m", fixture("models/hf_clip"), folders_of(counts, 40), "--zeroshot", "--quiet"}).out;
    EXPECT_EQ(contains(out, "\nconfusion (a row for each label, a column for each prediction)\n"), classes == 20)
        << out;
    EXPECT_EQ(contains(out, "\nmost confused classes\n"), classes == 21) << out;
  }
}

TEST(EvalZeroShot, TakesTheNamesOfTheDatasetOrOfTheOption) {
  const fs::path root = folders_of({{"cat", 2}, {"dog", 1}}, 40), list = scratch_folder() / "list.csv";
  const std::string model = fixture("models/hf_clip");
  std::ofstream(list) << "file,class_index\n"
                      << (root / "cat/0.png").string() << ",0\n"
                      << (root / "dog/0.png").string() << ",1\n";
  const ProgramResult none = run_program({"eval", "-m", model, list, "--zeroshot"});
  EXPECT_EQ(none.status, 1);
  EXPECT_TRUE(contains(none.err, list.string() + ": expected names of the classes, for zero-shot classification, got "
                                                 "none (pass --labels FILE)"))
      << none.err;
  const json by_list = json_of({"eval", "-m", model, list, "--zeroshot", "--labels", "cat,dog", "--format", "json"});
  EXPECT_EQ(by_list["images"], 2);
  const json by_folders = json_of({"eval", "-m", model, root, "--zeroshot", "--format", "json"});
  EXPECT_EQ(by_folders["images"], 3);
  for (const json& entry : by_folders["classes"])
    EXPECT_EQ(entry["label"], entry["index"] == 0 ? "cat" : "dog") << entry;
  const json three = json_of({"eval", "-m", model, root, "--zeroshot", "--labels", "cat,dog,bone", "--format", "json"});
  EXPECT_EQ(three["images"], 3);
}

// Logits that are not finite are written as they are, beside their error.
TEST(EvalFailures, OfLogitsKeepTheirRow) {
  const fs::path model = with_config("timm_token", [](json&) {}), root = folders_of({{"0", 1}, {"1", 1}}, 40),
                 files = scratch_folder();
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [name, tensor] : read_golden(model / "model.safetensors").tensors) {
    tensors.emplace_back(name, tensor.clone());
    if (name != "head.weight") continue;
    float* const row = tensors.back().second.data<float>() + 4 * 18;  // one overflows upwards, the other downwards
    std::fill_n(row, 18, 3e38F);
    std::fill_n(row + 18, 18, -3e38F);
  }
  weights::write_safetensors(model / "model.safetensors", tensors, {});
  const ProgramResult result = run_program(
      {"eval", "-m", model, root, "--logits", files / "l.npy", "--predictions", files / "p.csv", "--format", "json"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "expected images that can be read, got none")) << result.err;
  const NpyArray logits = read_npy(files / "l.npy");
  ASSERT_EQ(logits.shape, (std::vector<int64_t>{2, 10}));
  const std::vector<std::string> rows = lines_of(content_of(files / "p.csv"));
  ASSERT_EQ(rows.size(), 3U);
  for (size_t image = 0; image < 2; ++image) {
    for (size_t i = 0; i < 10; ++i)
      EXPECT_EQ(std::isfinite(logits.f32[10 * image + i]), i != 4 && i != 5) << image << i;
    EXPECT_TRUE(contains(rows[image + 1], str(".png,", image, ",,,,"))) << rows[image + 1];
    EXPECT_TRUE(contains(rows[image + 1], "finite logits")) << rows[image + 1];
  }
}

TEST(EvalLabelsJson, HasEachNumberOfTheReport) {
  const fs::path root = image_folder(4), files = scratch_folder();
  const fs::path model =
      with_config("timm_token", [](json& config) { config["problem_type"] = "multi_label_classification"; });
  const std::vector<std::vector<int64_t>> labels{{0, 3}, {1}, {}, {2, 3}};
  std::ofstream(root / "list.csv") << "file,class_index\na.png,0|3\nb.png,1\nc.png,\nd.png,2|3\n";
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back(i == 3 ? "three, 3" : "n" + std::to_string(i));
  const Arguments arguments{"eval",          "-m",
                            model,           root / "list.csv",
                            "--labels",      names_file(names),
                            "--logits",      files / "l.npy",
                            "--predictions", files / "p.csv",
                            "--quiet"};
  const json object = json_of(arguments + Arguments{"--format", "json"});
  const std::vector<float> logits = read_npy(files / "l.npy").f32;
  data::MultiLabelReport report(10);
  for (size_t i = 0; i < 4; ++i) report.add({logits.data() + 10 * i, 10}, labels[i], "image");
  EXPECT_EQ(object["images"], 4);
  EXPECT_EQ(object["activation"], "sigmoid");
  EXPECT_EQ(object["map"], report.macro_average_precision().value());
  EXPECT_EQ(object["map_micro"], report.micro_average_precision().value());
  EXPECT_EQ(object["exact"], report.exact());
  expect_interval(object["exact_interval"], report.exact(), 4);
  expect_metrics(object["macro"], report.macro_average());
  expect_metrics(object["micro"], report.micro_average());
  EXPECT_GT(object["images_per_second"], 0);
  ASSERT_EQ(object["classes"].size(), 10U);
  for (int64_t c = 0; c < 10; ++c) {
    const json& entry = object["classes"][static_cast<size_t>(c)];
    EXPECT_EQ(entry["index"], c);
    EXPECT_EQ(entry["label"], names[static_cast<size_t>(c)]);
    expect_metrics(entry, report.of_class(c));
    const auto precision = report.average_precision_of(c);
    EXPECT_EQ(entry["average_precision"], precision ? json(*precision) : json());
  }
  const std::vector<std::string> rows = lines_of(content_of(files / "p.csv"));
  EXPECT_EQ(rows.at(0), "file,labels,predictions,n0,n1,n2,\"three, 3\",n4,n5,n6,n7,n8,n9,error");
  EXPECT_TRUE(contains(rows.at(1), "a.png,\"n0|three, 3\",")) << rows[1];
  const std::string table = run(arguments).out;
  EXPECT_TRUE(contains(table, "\nmacro average  ")) << table;
  EXPECT_TRUE(contains(table, "\nthree, 3       ")) << table;
}

TEST(KnnJson, AClassWithoutAVoteIsNoneOfTheFive) {
  const fs::path train = scratch_folder(), test = scratch_folder();
  for (uint64_t c = 0; c < 7; ++c) write_noise(train / std::to_string(c) / "1.png", 32, 32, c);
  write_noise(test / "6/1.png", 32, 32, 6);
  write_noise(test / "0/1.png", 32, 32, 6);
  const json object = json_lines(run({"knn", "-m", small_model(), train, test, "--k", "1"}).out).at(0);
  EXPECT_EQ(object["top1"], 0.5);
  EXPECT_EQ(object["top5"], 0.5);
}

// Votes of test images, with the interval of each accuracy.
TEST(KnnJson, HasBothAccuraciesWithTheirIntervals) {
  const fs::path train = scratch_folder(), test = scratch_folder();
  for (uint64_t c = 0; c < 7; ++c) {
    for (uint64_t i = 0; i < 2; ++i) {
      write_noise(train / std::to_string(c) / (std::to_string(i) + ".png"), 32, 32, 10 * c + i);
      write_noise(test / std::to_string(c) / (std::to_string(i) + ".png"), 32, 32, 500 + 10 * c + i);
    }
  }
  write_noise(test / "3/same.png", 32, 32, 31);
  const ProgramResult result = run({"knn", "-m", small_model(), train, test, "--k", "9"});
  const json object = json_lines(result.out).at(0);
  EXPECT_EQ(object["images"], 15);
  EXPECT_EQ(object["training_images"], 14);
  EXPECT_EQ(object["k"], 9);
  ASSERT_LT(object["top1"].get<double>(), object["top5"].get<double>()) << "the names must matter";
  expect_interval(object["top1_interval"], object["top1"], 15);
  expect_interval(object["top5_interval"], object["top5"], 15);
  EXPECT_TRUE(contains(result.err, "vitrail: training set: 14 images of " + train.string())) << result.err;
  EXPECT_TRUE(contains(result.err, "vitrail: test set: 15 images of " + test.string())) << result.err;
}

// The default splits: train for the one, test for the other, else val.
TEST(KnnSplits, WithoutATestSplitItIsVal) {
  const fs::path root = scratch_folder();
  int seed = 0;
  for (const auto& [split, count] : {std::pair("train", 2), std::pair("val", 3)}) {
    for (int i = 0; i < count; ++i)
      write_noise(root / split / (i == 0 ? "a" : "b") / (std::to_string(i) + ".png"), 32, 32,
                  static_cast<uint64_t>(++seed));
  }
  const json object = json_of({"knn", "-m", small_model(), root, root, "--k", "1", "--quiet"});
  EXPECT_EQ(object["training_images"], 2);
  EXPECT_EQ(object["images"], 3);
}

// The numbers of text and CSV are those of JSON.
TEST(Classify, TextAndCsvHaveTheNumbersOfJson) {
  const fs::path folder = image_folder(2), broken = folder / "c.png",
                 labels = names_file({"a", "b, c", "d", "e", "f", "g", "h", "i", "j", "k\tl"});
  std::ofstream(broken) << "no image";
  const auto classify = [&](const std::string& format) {
    const ProgramResult result =
        run_program({"classify", "-m", small_model(), folder, "--labels", labels, "--top", "10", "--format", format});
    EXPECT_EQ(result.status, 1);
    return result.out;
  };
  const auto objects = json_lines(classify("json"));
  ASSERT_EQ(objects.size(), 3U);
  EXPECT_EQ(objects[2]["path"], broken.string());
  std::string text, csv = "path,rank,index,label,probability,error\n";
  for (size_t i = 0; i < 2; ++i) {
    const std::string path = objects[i]["path"];
    text += path + "\n";
    int rank = 0;
    for (const json& prediction : objects[i]["predictions"]) {
      const auto probability = static_cast<double>(prediction["probability"].get<float>());
      const std::string label = prediction["label"];
      char number[64];
      std::snprintf(number, sizeof number, "  %5.1f %%  ", 100 * probability);
      text += number + (label == "k\tl" ? "k\\x09l" : label) + "\n";
      std::snprintf(number, sizeof number, ",%.6g,\n", probability);
      csv += path + "," + std::to_string(++rank) + "," + std::to_string(prediction["index"].get<int>()) + "," +
             (label == "b, c" ? "\"b, c\"" : label) + number;
    }
  }
  EXPECT_EQ(classify("text"), text);
  const std::string rows = classify("csv");
  EXPECT_TRUE(rows.starts_with(csv + broken.string() + ",,,,,")) << rows;
  EXPECT_EQ(lines_of(rows).size(), 22U);
}

// Inputs are taken in the order of the arguments, with what standard input names in its place.
TEST(Classify, StandardInputHasItsPlaceAmongTheArguments) {
  const fs::path folder = image_folder(4);
  const auto path = [&](const char* name) { return (folder / name).string(); };
  const auto paths = [&](const Arguments& inputs, const std::string& input) {
    std::vector<std::string> result;
    for (const json& object :
         json_lines(run_program(Arguments{"classify", "-m", small_model(), "--format", "json"} + inputs, input).out))
      result.push_back(object["path"]);
    return result;
  };
  EXPECT_EQ(paths({path("c.png"), "-", path("a.png")}, path("d.png") + "\n" + path("b.png") + "\n"),
            (std::vector<std::string>{path("c.png"), path("d.png"), path("b.png"), path("a.png")}));
  EXPECT_EQ(paths({path("c.png"), "-", path("a.png")}, content_of(folder / "b.png")),
            (std::vector<std::string>{path("c.png"), "-", path("a.png")}));
  EXPECT_EQ(paths({"-"}, path("d.png") + "\n" + folder.string()).size(), 5U) << "a folder has all its images";
  const ProgramResult broken =
      run_program({"classify", "-m", small_model(), "-"}, content_of(folder / "b.png").substr(0, 60));
  EXPECT_EQ(broken.status, 1);
  EXPECT_TRUE(contains(broken.err, "standard input: ")) << broken.err;
}

TEST(Classify, ListsOnStandardInputHaveShortLinesThatEndAlike) {
  const auto message = [](const std::string& input) {
    const ProgramResult result = run_program({"classify", "-m", small_model(), "-"}, input);
    EXPECT_EQ(result.status, 1);
    return result.err;
  };
  EXPECT_TRUE(contains(message(std::string((1 << 20) + 1, 'x')),
                       "standard input: expected paths, got a line of more than 1 MiB"));
  EXPECT_TRUE(contains(message(std::string(1 << 19, 'x') + "\n"), "File name too long"));
  EXPECT_TRUE(contains(message(std::string(70000, '\n') + std::string("b\0c\n", 4)),
                       "standard input: expected paths that end alike, got newlines and NULs"));
}

// A folder of ImageNet's classes by their WordNet ids, for a model of a thousand classes.
TEST(Eval, WordNetIdsAreTheClassesOfAModelOfImageNet) {
  const fs::path model = with_config("timm_token", [](json& config) { config["num_classes"] = 1000; });
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [name, tensor] : read_golden(model / "model.safetensors").tensors) {
    if (name == "head.weight") {
      tensors.emplace_back(name, Tensor::randn({1000, 18}, 1));
    } else if (name == "head.bias") {
      tensors.emplace_back(name, Tensor::zeros({1000}));
    } else {
      tensors.emplace_back(name, tensor);
    }
  }
  weights::write_safetensors(model / "model.safetensors", tensors, {});
  const fs::path root = folders_of({{"n01440764", 1}, {"n01443537", 1}, {"n15075141", 1}}, 40), csv = root / "p.csv";
  run({"eval", "-m", model, root, "--predictions", csv, "--quiet"});
  const std::vector<std::string> rows = lines_of(content_of(csv));
  ASSERT_EQ(rows.size(), 4U);
  const char* const want[] = {",0,", ",1,", ",999,"};
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(contains(rows[i + 1], std::string("/0.png") + want[i])) << rows[i + 1];
}

// A model of independent scores may have one label.
TEST(ZeroShot, OneLabelOfASigmoidIsNoWarning) {
  const ProgramResult result = run(
      {"zeroshot", "-m", fixture("models/hf_siglip"), noise_folder() / "a.png", "--labels", "cat", "--format", "json"});
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(json_lines(result.out).at(0)["activation"], "sigmoid");
}

// Models without classes have figures without predictions.
TEST(Attention, OfModelsWithoutAHeadIsDrawnToo) {
  const fs::path folder = scratch_folder();
  for (const char* name : {"timm_num_classes_0", "hf_clip_vision_projection"}) {
    run({"attention", "-m", fixture(str("models/", name)), noise_folder() / "a.png", "-o", folder / "x.png", "--preset",
         "imagenet"});
    EXPECT_TRUE(fs::exists(folder / "x.png")) << name;
    fs::remove(folder / "x.png");
  }
}

// The program draws what the library does: maps of rows and columns, the prediction of a classifier in the caption.
TEST(Attention, TheFigureIsTheLibrarys) {
  const fs::path photo_file = noise_folder() / "a.png", file = scratch_folder() / "x.png",
                 labels = names_file({"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"});
  for (const char* name : {"timm_non_square", "hf_clip"}) {
    const std::string path = fixture(str("models/", name));
    const bool classifies = std::string(name) == "timm_non_square";
    const Model model(path, {.labels = classifies ? labels.string() : ""});
    const image::Image photo = model.read(photo_file);
    const image::ImageView view(photo);
    const Tensor input = model.preprocess({&view, 1});
    for (const Arguments& more : {Arguments{}, {"--layer", "0", "--head", "1"}, {"--rollout"}}) {
      pipeline::AttentionOptions options{.rollout = !more.empty() && more[0] == "--rollout"};
      if (more.size() == 4) options.layer = "0", options.head = "1";
      const std::vector<Tensor> weights = model.session().run(input, pipeline::attention_request(model, options));
      const image::Image want = pipeline::attention_figure(
          model, options, photo,
          {photo_file.string(), photo.width, photo.height, {input.size(2), input.size(3)}, weights},
          classifies ? model.session().logits(input) : Tensor());
      Arguments arguments{"attention", "-m", path, photo_file, "-o", file};
      if (classifies) arguments = arguments + Arguments{"--labels", labels};
      run(arguments + more);
      const image::Image got = image::read_image(file);
      EXPECT_EQ(got.width, want.width) << name;
      EXPECT_TRUE(got.pixels == want.pixels) << name << ::testing::PrintToString(more);
    }
  }
}

}  // namespace
}  // namespace vitrail::testing
