// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fstream>

#include "tests/apps/cli_fixture.h"
#include "vitrail/base/npy.h"

namespace vitrail::testing {
namespace {

TEST(Classify, JsonHasOneObjectPerImageInInputOrder) {
  const auto folder = image_folder(3);
  const ProgramResult result = run_program({"classify", "-m", small_model(), folder, "--format", "json", "--top", "2"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto objects = json_lines(result.out);
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_EQ(objects[0]["path"], (folder / "a.png").string());
  EXPECT_EQ(objects[2]["path"], (folder / "c.png").string());
  ASSERT_EQ(objects[0]["predictions"].size(), 2u);
  EXPECT_GE(objects[0]["predictions"][0]["probability"], objects[0]["predictions"][1]["probability"]);
  EXPECT_TRUE(objects[0]["predictions"][0]["index"].is_number_integer());
  EXPECT_TRUE(objects[0]["predictions"][0]["label"].is_string());
}

TEST(Classify, ABadFileIsReportedInItsPlaceAndOthersAreClassified) {
  const auto folder = image_folder(3);
  std::ofstream(folder / "b.png", std::ios::trunc) << "not an image";
  const auto logits = folder / "logits.npy";
  const ProgramResult result =
      run_program({"classify", "-m", small_model(), folder, "--format", "json", "--logits", logits});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(result.err.starts_with("vitrail: error: " + (folder / "b.png").string())) << result.err;
  const auto objects = json_lines(result.out);
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_TRUE(objects[0].contains("predictions"));
  EXPECT_TRUE(objects[1].contains("error"));
  EXPECT_TRUE(objects[2].contains("predictions"));
  const NpyArray rows = read_npy(logits);
  ASSERT_EQ(rows.shape, (std::vector<int64_t>{3, 10}));
  EXPECT_FALSE(std::isnan(rows.f32[0]));
  EXPECT_TRUE(std::isnan(rows.f32[10]));
  EXPECT_FALSE(std::isnan(rows.f32[20]));
}

// Pillow shows such an image white.  The first of a run is named; an image without such values is not.
TEST(Classify, GreyOfMoreThan8BitsThatIsWhiteIsToldOnce) {
  const auto folder = scratch_folder(), fixtures = fixture("image/decode");
  const auto pgm = [&](const char* name, const char* last) {
    std::ofstream(folder / name, std::ios::binary) << "P5 1 2 65535\n" << std::string("\0\7\0", 3) << last;
    return (folder / name).string();
  };
  const std::string dark = pgm("dark.pgm", "\xfe"), white = pgm("white.pgm", "\xff");
  const auto warnings_of = [](const std::vector<std::string>& images) {
    std::vector<std::string> arguments{"classify", "-m", small_model()};
    arguments.insert(arguments.end(), images.begin(), images.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.err;
  };
  EXPECT_EQ(warnings_of({dark, (fixtures / "rgb_16_big.tif").string()}), "");
  for (const std::string& image :
       {white, (fixtures / "grey_16.png").string(), (fixtures / "grey_16_little.tif").string()}) {
    const std::string warnings = warnings_of({dark, image, image});
    EXPECT_TRUE(warnings.starts_with("vitrail: warning: " + image + ": grey of more than 8 bits")) << warnings;
    EXPECT_EQ(lines_of(warnings).size(), 1U) << warnings;
  }
}

TEST(Classify, PathsComeFromStandardInput) {
  const auto folder = image_folder(2);
  const std::string paths = (folder / "b.png").string() + "\n\r\n" + (folder / "a.png").string() + "\n\n";
  const ProgramResult result =
      run_program({"classify", "-m", small_model(), "-", "--format", "csv", "--top", "1"}, paths);
  ASSERT_EQ(result.status, 0) << result.err;
  const auto lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "path,rank,index,label,probability,error");
  EXPECT_TRUE(lines[1].starts_with((folder / "b.png").string() + ",1,"));
  EXPECT_EQ(result.err, "vitrail: warning: standard input: 2 blank lines left out\n");
}

TEST(Classify, CsvFieldsAreQuotedWhereTheyNeedIt) {
  const auto folder = image_folder(1), file = folder / "a,\"b\".png";
  std::filesystem::rename(folder / "a.png", file);
  const ProgramResult result = run_program({"classify", "-m", small_model(), file, "--format", "csv", "--top", "1"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(lines_of(result.out).at(1).starts_with("\"" + folder.string() + "/a,\"\"b\"\".png\",1,")) << result.out;
}

TEST(Classify, BatchSizeAndThreadsDoNotChangeTheLogits) {
  const auto folder = image_folder(5);
  std::vector<std::vector<float>> results;
  for (const std::string batch : {"1", "2", "8"}) {
    const auto file = folder / ("logits" + batch + ".npy");
    const ProgramResult result = run_program({"classify", "-m", small_model(), folder, "--batch", batch, "--logits",
                                              file, "--threads", batch == "1" ? "1" : "2"});
    ASSERT_EQ(result.status, 0) << result.err;
    results.push_back(read_npy(file).f32);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(Classify, LabelsNameTheClassesAndTheirCountIsChecked) {
  const auto folder = image_folder(1);
  const auto labels = folder / "labels.txt";
  std::ofstream file(labels);
  for (int i = 0; i < 10; ++i) file << "kind " << i << "\n";
  file.close();
  ProgramResult result = run_program({"classify", "-m", small_model(), folder, "--labels", labels});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "kind ")) << result.out;
  std::ofstream(labels, std::ios::app) << "one too many\n";
  result = run_program({"classify", "-m", small_model(), folder, "--labels", labels});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "expected 10 class names, one per line, got 11")) << result.err;
}

TEST(Classify, PredictionsOnPhotographsMatchTimm) {
  VITRAIL_SKIP_WITH_SANITIZER();
  VITRAIL_NEED_ASSETS(assets);
  const ProgramResult result = run_program({"classify", "-m", assets / "weights/deit_tiny_patch16_224.fb_in1k",
                                            assets / "images/nips2017", "--top", "1", "--format", "json"});
  ASSERT_EQ(result.status, 0) << result.err;
  std::map<std::string, int> labels;  // ImageId → index
  std::ifstream csv(assets / "images/nips2017/labels.csv");
  int correct = 0;
  const auto objects = json_lines(result.out);
  ASSERT_EQ(objects.size(), 64u);
  std::string line;
  std::getline(csv, line);
  while (std::getline(csv, line)) {
    const auto comma = line.find(','), second = line.find(',', comma + 1);
    labels[line.substr(0, comma)] = std::stoi(line.substr(comma + 1, second - comma - 1));
  }
  for (const auto& object : objects) {
    const std::string name = std::filesystem::path(object["path"].get<std::string>()).filename();
    const auto found = labels.find(name);
    ASSERT_NE(found, labels.end()) << name;
    correct += found->second == object["predictions"][0]["index"].get<int>();
  }
  EXPECT_EQ(correct, 55);  // timm's count with these weights on these images
}

}  // namespace
}  // namespace vitrail::testing
