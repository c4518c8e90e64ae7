// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/input_paths.h"

#include "tests/data/support.h"

namespace vitrail::data {
namespace {

std::vector<std::string> paths_of(const std::vector<InputPath>& inputs, const fs::path& root) {
  std::vector<std::string> paths;
  for (const InputPath& input : inputs) paths.push_back(fs::path(input.path).lexically_relative(root).string());
  return paths;
}

std::vector<InputPath> expand(const std::vector<std::string>& inputs) { return expand_input_paths(inputs); }

TEST(InputPaths, AFolderIsWalkedRecursivelyAndSortedByPath) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"b.png", "a/z.JPG", "a/deep/er/m.webp", "a.gif", "B.jpeg"});
  write_file(root / "a/readme.txt", "no image");
  EXPECT_EQ(paths_of(expand({root.string()}), root),
            (std::vector<std::string>{"B.jpeg", "a.gif", "a/deep/er/m.webp", "a/z.JPG", "b.png"}));
}

TEST(InputPaths, KeepTheirOrder) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"x/2.png", "x/1.png", "lone.data"});
  const std::vector<InputPath> inputs =
      expand({(root / "missing.png").string(), (root / "x").string(), (root / "lone.data").string()});
  EXPECT_EQ(paths_of(inputs, root), (std::vector<std::string>{"missing.png", "x/1.png", "x/2.png", "lone.data"}));
  EXPECT_TRUE(inputs[0].error.empty()) << "a missing file fails when it is decoded";
}

TEST(InputPaths, AFolderWithoutImagesGivesAnError) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"full/1.png"});
  fs::create_directories(root / "empty/inner");
  const std::vector<InputPath> inputs = expand({(root / "empty").string(), (root / "full").string()});
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_TRUE(contains(inputs[0].error, "empty: expected a folder with images"));
  EXPECT_TRUE(inputs[1].error.empty());
}

TEST(InputPaths, LinksAreFollowedExceptToAncestors) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"a/1.png", "elsewhere/2.png"});
  fs::create_directory_symlink(root / "a", root / "a/again");
  fs::create_directory_symlink(root / "elsewhere", root / "a/link");
  fs::create_symlink(root / "nowhere", root / "a/dangling");
  EXPECT_EQ(paths_of(expand({(root / "a").string()}), root), (std::vector<std::string>{"a/1.png", "a/link/2.png"}));
}

TEST(InputPaths, FilesThatAreLeftOutAreCountedOnceOverAllFolders) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"a/1.png", "b/2.png", "a/._1.png", "a/__MACOSX/3.png"});
  for (const char* name : {"a/1.heic", "a/2.HEIC", "b/3.svg", "b/.DS_Store", "none/4.avif"}) {
    write_file(root / name, "x");
  }
  Warnings warnings;
  const auto paths = expand_input_paths({(root / "a").string(), (root / "b").string()});
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_EQ(warnings.messages, std::vector<std::string>{"3 files left out: 2 .heic, 1 .svg"});
  const auto empty = expand_input_paths({(root / "none").string()});
  ASSERT_EQ(empty.size(), 1u);
  EXPECT_TRUE(contains(empty[0].error, "got none (1 file left out: 1 .avif)")) << empty[0].error;
}

}  // namespace
}  // namespace vitrail::data
