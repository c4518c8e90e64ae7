// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/unlabelled.h"

#include "tests/data/support.h"
#include "tests/data/tar_files.h"

namespace vitrail::data {
namespace {

// The paths of the images, relative to `root`; expects that the labels number them and that they can be read.
Names images_of(const fs::path& path, const fs::path& root) {
  const auto dataset = open_unlabelled(path);
  Names names;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    EXPECT_EQ(dataset->label(i), i);
    EXPECT_GT(dataset->image(i).width, 0);
    names.push_back(fs::path(dataset->path(i)).lexically_relative(root).string());
  }
  return names;
}

TEST(Unlabelled, HasTheImagesOfAFolderAtAnyDepth) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"a.png", "train/cat/b.png", "train/c.png", "test/dog/deep/d.png", ".hidden/e.png"});
  write_file(root / "train/notes.txt", "no image");
  const Warnings warnings;
  EXPECT_EQ(images_of(root, root), (Names{"a.png", "test/dog/deep/d.png", "train/c.png", "train/cat/b.png"}));
  EXPECT_TRUE(warnings.any("1 file left out: 1 .txt"));
}

TEST(Unlabelled, HasTheImagesOfAnArchiveAndOfShards) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "one.tar", tar_of({"cat/1.png", "2.png"}));
  EXPECT_EQ(images_of(root / "one.tar", root), (Names{"one.tar/2.png", "one.tar/cat/1.png"}));
  write_file(root / "shards/b.tar", tar_of({"3.png"}));
  write_file(root / "shards/a.tar", tar_of({"9.png", "5.png"}));
  EXPECT_EQ(images_of(root / "shards", root / "shards"), (Names{"a.tar/5.png", "a.tar/9.png", "b.tar/3.png"}));
}

TEST(Unlabelled, HasThePathsOfAListOnce) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"x/a.png", "x/b.png"});
  write_file(root / "list.txt", "x/b.png\r\n\n" + (root / "x/a.png").string() + "\nx/b.png");
  const Warnings warnings;
  EXPECT_EQ(images_of(root / "list.txt", root), (Names{"x/b.png", "x/a.png"}));
  EXPECT_TRUE(warnings.any("list.txt: 1 line left out, whose path comes again"));
}

TEST(Unlabelled, HasTheTrainingImagesOfALabelledSet) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"a.png", "b.png"});
  write_file(root / "set.csv", "file,label,split\na.png,cat,train\nb.png,dog,test\n");
  EXPECT_EQ(images_of(root / "set.csv", root), Names{"a.png"});
}

TEST(Unlabelled, ThrowsWithoutImages) {
  const fs::path root = testing::scratch_folder();
  EXPECT_TRUE(contains(error_of([&] { open_unlabelled(root / "missing"); }), "nothing at this path"));
  write_file(root / "empty.txt", "\n");
  EXPECT_TRUE(contains(error_of([&] { open_unlabelled(root / "empty.txt"); }), "expected images, got none"));
}

TEST(UnlabelledHoldout, IsATenthWithALimit) {
  EXPECT_EQ(unlabelled_holdout(1000), 100);
  EXPECT_EQ(unlabelled_holdout(50'000), 2000);
}

}  // namespace
}  // namespace vitrail::data
