// SPDX-License-Identifier: Apache-2.0
// Split folders whose files are not read: another split is not read in their place without a word.
#include "tests/data/support.h"
#include "vitrail/data/datasets/dataset.h"
#include "vitrail/data/datasets/manifest_internal.h"

namespace vitrail::data {
namespace {

using Paths = std::vector<std::string>;

// Train and val have images; `files` are of other kinds, and those that end with '/' are empty folders.
fs::path dataset_with(const Paths& files, const std::string& around = "") {
  const fs::path root = testing::scratch_folder(), folder = root / around;
  place_images(folder, {"train/a/1.png", "train/b/2.png", "val/a/3.png"});
  for (const std::string& file : files) {
    if (file.ends_with('/')) {
      fs::create_directories(folder / file);
    } else {
      write_file(folder / file, "x");
    }
  }
  return root;
}

TEST(SplitsWithoutImages, AreAnErrorWhereTheyAreWantedOrPreferred) {
  const std::pair<Paths, std::string> cases[] = {
      {{"test/a/1.heic", "test/b/2.heic", "test/b/x.txt"}, "none (3 files left out: 2 .heic, 1 .txt)"},
      {{"test/a/00001", "test/b/00002"}, "none (2 files left out: 2 without an extension)"},
      {{"test/1.heic"}, "none (1 file left out: 1 .heic)"},
      {{"test/a/", "test/b/"}, "none"}};
  for (const auto& [files, got] : cases) {
    for (const std::string around : {"", "archive"}) {
      const fs::path root = dataset_with(files, around);
      const std::string wanted = root.string() + ": expected images that can be read in the split test, got " + got;
      EXPECT_EQ(error_of([&] { open_dataset(root, {}); }), wanted) << "another split would be evaluated";
      EXPECT_EQ(error_of([&] { open_dataset(root, {.split = "Testing"}); }), wanted);
      Warnings warnings;
      EXPECT_EQ(open_dataset(root, {.split = "val"})->size(), 1);
      EXPECT_EQ(open_dataset(root, {.default_splits = {"train"}})->size(), 2);
      EXPECT_EQ(open_dataset(root, {.default_splits = {"val", "test"}})->size(), 1) << "the one before it";
      EXPECT_TRUE(warnings.messages.empty()) << warnings.messages.front();
    }
  }
}

TEST(SplitsWithoutImages, AreToldWhereSplitsAreChosen) {
  const fs::path root = dataset_with({"test/a/1.heic", "test/b/2.heic"});
  const Warnings warnings;
  EXPECT_EQ(dataset_splits(root), (Paths{"train", "val"}));
  EXPECT_EQ(warnings.messages,
            Paths{root.string() + ": images that can be read in the split test: none (2 files left out: 2 .heic)"});
}

TEST(SplitsWithoutImages, MayBeSecondNamesOfOnesWithImages) {
  const fs::path root = dataset_with({"Validation/a/1.heic"});
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {}); }), "in the split Validation, got none (1 file"));
  EXPECT_EQ(open_dataset(root, {.split = "val"})->size(), 1) << "the exact name";
}

// The folder "pets" is entered, and the split beside it is lost.
TEST(SplitsWithoutImages, BesideAFolderAroundClassesAreToldOnce) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"pets/a/1.png", "pets/b/2.png"});
  write_file(root / "test/a/1.heic", "x");
  Warnings warnings;
  EXPECT_EQ(open_dataset(root, {})->size(), 2);
  EXPECT_EQ(dataset_splits(root), Paths());
  EXPECT_EQ(warnings.messages,
            Paths{root.string() + ": images that can be read in the split test: none (1 file left out: 1 .heic)"});
}

TEST(SplitsWithoutImages, AreNoMatterWhereThereIsNothingOrFoldersAreClasses) {
  const Warnings warnings;
  EXPECT_EQ(open_dataset(dataset_with({"test/", "test.txt"}), {})->split(), "val");
  EXPECT_EQ(dataset_splits(dataset_with({"test/.gitkeep"})), (Paths{"train", "val"}));
  EXPECT_TRUE(warnings.messages.empty()) << warnings.messages.front();
  EXPECT_EQ(open_dataset(dataset_with({"test/a/1.txt"}), {.split = "."})->size(), 3);
}

TEST(SplitsWithoutImages, WithAFolderThatCannotBeReadSayWhy) {
  FolderListing listing;
  listing.images = {"train/a/1.png", "val/a/2.png"};
  listing.folders = {"test", "test/a", "train", "train/a", "val", "val/a"};
  listing.unreadable = {{"test/a", "test/a: cannot be read"}};
  EXPECT_EQ(error_of([&] {
              class_folder_manifest({"set", listing, images_below("")})->open({});
            }),
            "set: expected images that can be read in the split test, got test/a: cannot be read");
}

}  // namespace
}  // namespace vitrail::data
