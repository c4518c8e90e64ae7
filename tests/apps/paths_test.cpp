// SPDX-License-Identifier: Apache-2.0
// Unusual names of files, in lists, in tables and in results.
#include "tests/apps/option_effects.h"
#include "vitrail/base/npy.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

TEST(Paths, ACarriageReturnIsQuotedInCsv) {
  const fs::path folder = image_folder(1), file = folder / "a\rb.png";
  fs::rename(folder / "a.png", file);
  const std::string out = run({"classify", "-m", small_model(), file, "--format", "csv", "--top", "1"}).out;
  EXPECT_TRUE(contains(out, "\n\"" + file.string() + "\",1,")) << ::testing::PrintToString(out);
}

// A line of a list that begins with a backslash has escapes, so that such a path needs them too.
TEST(Paths, APathThatBeginsWithABackslashIsEscapedInTheListOfRows) {
  const fs::path folder = image_folder(1);
  fs::rename(folder / "a.png", folder / "\\n.png");
  ASSERT_EQ(shell("cd '" + folder.string() + "' && $V embed -m $M '\\n.png' -o x.npy 2> log"), 0)
      << content_of(folder / "log");
  EXPECT_EQ(content_of(folder / "x.txt"), "\\\\\\n.png\n");
  const Arguments index{"index", folder / "x.npy", "-o", folder / "x.index"};
  run(index);
  const auto found =
      json_of({"search", folder / "x.index", "-m", small_model(), folder / "\\n.png", "--format", "json"});
  EXPECT_TRUE(contains(found.dump(), R"("\\n.png")")) << found;
}

// Lists that end in NULs may have any name.
TEST(Paths, OfAListWithNulsAreTakenAsTheyAre) {
  const fs::path folder = image_folder(2), file = folder / "a.png\r";
  fs::rename(folder / "a.png", file);
  const ProgramResult result = run_program({"classify", "-m", small_model(), "-", "--format", "json"},
                                           file.string() + '\0' + (folder / "b.png").string() + '\0');
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(json_lines(result.out).at(0)["path"], file.string());
}

TEST(Paths, TemplatesOfAnySystemsLinesAreTheSame) {
  const fs::path folder = image_folder(1), plain = folder / "plain.txt", windows = folder / "windows.txt";
  std::ofstream(plain) << "a photo of a {}\nthe {}\n";
  std::ofstream(windows) << "\xef\xbb\xbf"
                            "a photo of a {}\r\n\r\nthe {}\r\n";
  const auto probabilities = [&](const fs::path& templates, const fs::path& labels) {
    return run({"zeroshot", "-m", fixture("models/hf_clip"), folder / "a.png", "--labels", labels, "--templates",
                templates, "--format", "json"})
        .out;
  };
  EXPECT_EQ(probabilities(windows, "cat,dog"), probabilities(plain, "cat,dog"));
}

// The key of a file in a shard ends at the first dot of its name, as webdataset has it.
TEST(Paths, TheKeyOfAFileInAShardEndsAtTheFirstDotOfItsName) {
  const fs::path folder = image_folder(1), out = scratch_folder() / "features";
  fs::create_directory(folder / "v1.0");
  fs::rename(folder / "a.png", folder / "v1.0/a.seg.png");
  ASSERT_EQ(shell("tar -C '" + folder.string() + "' -cf '" + folder.string() + "/1.tar' v1.0/a.seg.png"), 0);
  run({"embed", "-m", small_model(), folder / "1.tar", "-o", out});
  std::string records;
  for (const auto& entry : fs::directory_iterator(out)) {
    if (entry.path().extension() != ".npy") records += content_of(entry.path());
  }
  EXPECT_TRUE(contains(records, R"("key":"v1.0/a")")) << records;
}

TEST(Duplicates, GroupsAreInTheOrderOfTheirFirstImages) {
  const fs::path images = image_folder(2), folder = scratch_folder();
  for (const auto& [from, to] : {std::pair("a.png", "1.png"), std::pair("b.png", "2.png"), std::pair("b.png", "3.png"),
                                 std::pair("a.png", "4.png"), std::pair("b.png", "5.png")}) {
    fs::copy_file(images / from, folder / to);
  }
  const auto groups =
      json_lines(run({"duplicates", "-m", small_model(), folder, "--threshold", "1", "--format", "json"}).out);
  ASSERT_EQ(groups.size(), 2U);
  const auto names = [&](size_t group) {
    std::string all;
    for (const auto& image : groups[group]["images"]) all += fs::path(image["path"].get<std::string>()).stem().string();
    return all;
  };
  EXPECT_EQ(names(0), "14");
  EXPECT_EQ(names(1), "235");
}

// The overlay is over the image that its features are of.
TEST(Pca, AnImageThatFailedShiftsNothing) {
  const fs::path images = image_folder(2), mixed = scratch_folder(), alone = scratch_folder();
  std::ofstream(images / "a.png", std::ios::trunc) << "no image";
  const ProgramResult result =
      run_program({"pca", "-m", small_model(), images / "a.png", images / "b.png", "-o", mixed});
  EXPECT_EQ(result.status, 1);
  run({"pca", "-m", small_model(), images / "b.png", "-o", alone});
  const std::string want = content_of(alone / "b.png");
  ASSERT_FALSE(want.empty());
  EXPECT_EQ(content_of(mixed / "b.png"), want) << result.err;
  EXPECT_FALSE(fs::exists(mixed / "a.png"));
}

// The first images of a stream fail before the width of a row is known.
TEST(Embed, FailuresBeforeTheFirstImageAreRowsOfNaN) {
  const fs::path images = image_folder(4), file = scratch_folder() / "f.npy";
  for (const char* name : {"a.png", "b.png", "d.png"}) std::ofstream(images / name, std::ios::trunc) << "no image";
  EXPECT_EQ(run_program({"embed", "-m", small_model(), images, "-o", file}).status, 1);
  const NpyArray rows = read_npy(file);
  ASSERT_EQ(rows.shape[0], 4);
  const auto width = static_cast<size_t>(rows.shape[1]);
  for (size_t row = 0; row < 4; ++row) {
    for (size_t i = 0; i < width; ++i) EXPECT_EQ(std::isnan(rows.f32[row * width + i]), row != 2) << row;
  }
}

}  // namespace
}  // namespace vitrail::testing
