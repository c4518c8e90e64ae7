// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/folder_walk_internal.h"

#include <sys/stat.h>

#include "tests/data/support.h"
#include "tests/support/errors.h"
#include "vitrail/data/datasets/left_out_internal.h"

namespace vitrail::data {
namespace {

using Paths = std::vector<std::string>;

TEST(FolderWalk, ListsImagesOtherFilesAndFoldersSorted) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"b/2.png", "a/deep/1.PNG", "3.png"});
  write_file(root / "a/notes.txt", "x");
  fs::create_directories(root / "empty/inner");
  write_file(root / "__MACOSX/c.png", "x");
  write_file(root / "a/._2.png", "x");
  const FolderListing listing = walk_folder(root);
  EXPECT_EQ(listing.images, (Paths{"3.png", "a/deep/1.PNG", "b/2.png"}));
  EXPECT_EQ(listing.others, Paths{"a/notes.txt"});
  EXPECT_EQ(listing.folders, (Paths{"a", "a/deep", "b", "empty", "empty/inner"}));
}

TEST(FolderWalk, LeavesOutWhatIsHidden) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"a/1.png", "a/.2.png", ".git/3.png", "a/.ipynb_checkpoints/4.png"});
  const FolderListing listing = walk_folder(root);
  EXPECT_EQ(listing.images, Paths{"a/1.png"});
  EXPECT_EQ(listing.folders, Paths{"a"});
  EXPECT_EQ(walk_folder(root / ".git").images, Paths{"3.png"}) << "the folder itself may be hidden";
}

// A pipe without a writer would be waited for.
TEST(FolderWalk, PipesSocketsAndDevicesAreNoImages) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"1.png"});
  ASSERT_EQ(::mkfifo((root / "pipe.png").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", root / "device.png");
  fs::create_symlink("1.png", root / "link.png");
  const FolderListing listing = walk_folder(root);
  EXPECT_EQ(listing.images, (Paths{"1.png", "link.png"}));
  EXPECT_EQ(listing.others, (Paths{"device.png", "pipe.png"}));
}

// Only a link to a folder around it would be read for ever.
TEST(FolderWalk, AFolderThatSeveralLinksLeadToIsListedUnderEachName) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"b/1.png", "d/2.png"});
  for (const char* link : {"a", "c", "d/again"}) fs::create_directory_symlink(root / "b", root / link);
  fs::create_directory_symlink(root, root / "b/up");
  fs::create_directory_symlink(root / "b", root / "b/self");
  EXPECT_EQ(walk_folder(root).images, (Paths{"a/1.png", "b/1.png", "c/1.png", "d/2.png", "d/again/1.png"}));
}

TEST(FolderWalk, MayHaveALimitOfAllEntries) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"a/1.png", "a/.2.png", "b/3.png"});  // with their folders five entries
  EXPECT_EQ(walk_folder(root, 5).images, (Paths{"a/1.png", "b/3.png"}));
  EXPECT_ERROR(error_of([&] { walk_folder(root, 4); }), root.string(), "more");
}

TEST(FolderWalk, AFolderThatCannotBeReadIsAnError) {
  const fs::path root = testing::scratch_folder();
  EXPECT_TRUE(contains(error_of([&] { walk_folder(root / "absent"); }), "absent: cannot be read: "));
}

TEST(LeftOut, FilesAreCountedByKindInDescendingOrder) {
  EXPECT_EQ(left_out_text({}), "");
  EXPECT_EQ(left_out_text({"a/b.HEIC"}), "1 file left out: 1 .heic");
  EXPECT_EQ(left_out_text({"a.svg", "b.heic", "c.HEIC", "x/README", ".hidden", "dot."}),
            "6 files left out: 3 without an extension, 2 .heic, 1 .svg");
  EXPECT_EQ(left_out_text({"a.b/c"}), "1 file left out: 1 without an extension") << "a dot of the folder";
  Paths paths;
  for (char c = 'a'; c <= 'j'; ++c) paths.push_back(std::string("f.") + c);
  EXPECT_TRUE(left_out_text(paths).ends_with(", 1 .j"));
  paths.insert(paths.end(), {"f.k", "g.k", "f.l"});
  const std::string text = left_out_text(paths);
  EXPECT_TRUE(text.starts_with("13 files left out: 2 .k, 1 .a,")) << text;
  EXPECT_TRUE(text.ends_with("1 .i and 2 of other kinds")) << text;
}

TEST(LeftOut, KindsOfImagesThatAreNotReadAreKnown) {
  for (const char* path : {"a.heic", "b/c.AVIF", "x.jp2", "y.svg", "scan.dcm", "clip.MP4", "raw.cr2"})
    EXPECT_TRUE(is_unsupported_image(path)) << path;
  for (const char* path : {"a.png", "a.txt", "heic", ".heic", "a.heic/b", "", "a."})
    EXPECT_FALSE(is_unsupported_image(path)) << path;
}

TEST(LeftOut, WhatIsHiddenOrAddedBySystemsIsKnownByItsName) {
  for (const char* name : {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini", "._a.png", "lost+found", ".hidden"})
    EXPECT_TRUE(is_ignored_name(name)) << name;
  for (const char* name : {"MACOSX", "a._b", "thumbs.png", "", "_"}) EXPECT_FALSE(is_ignored_name(name)) << name;
}

}  // namespace
}  // namespace vitrail::data
