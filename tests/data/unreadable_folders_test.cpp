// SPDX-License-Identifier: Apache-2.0
// Class folders with subfolders that cannot be read.  Listings stand for them, because root may read every folder.
#include "tests/data/support.h"
#include "vitrail/data/datasets/class_folders_internal.h"

namespace vitrail::data {
namespace {

using Paths = std::vector<std::string>;

FolderListing listing_of(Paths images, Paths folders, const Paths& unreadable) {
  FolderListing listing;
  listing.images = std::move(images);
  listing.folders = std::move(folders);
  for (const std::string& path : unreadable) listing.unreadable.push_back({path, path + ": cannot be read"});
  return listing;
}

TEST(UnreadableFolders, BelowAClassCostTheirImages) {
  const FolderListing listing =
      listing_of({"a/1.png", "b/2.png"}, {"a", "a/locked", "a/other", "b"}, {"a/locked", "a/other"});
  Warnings warnings;
  const ClassFolders folders = read_class_folders(listing, {.where = "set"});
  EXPECT_EQ(folders.class_names, (Paths{"a", "b"}));
  EXPECT_EQ(folders.items.size(), 2u);
  EXPECT_EQ(warnings.messages, (Paths{"set: left out 2 folders that cannot be read: 'a/locked', 'a/other'"}));
}

// The labels of the other folders stay, also where folders are numbered.
TEST(UnreadableFolders, OfAClassAreLeftOutWhereTheModelHasTheClasses) {
  const FolderListing listing = listing_of({"a/1.png", "c/2.png"}, {"a", "b", "c"}, {"b"});
  for (const Paths& labels : {Paths{"a", "b", "c"}, Paths{"x", "y", "z"}}) {
    Warnings warnings;
    const ClassFolders folders = read_class_folders(listing, {.where = "set", .labels = labels, .num_classes = 3});
    ASSERT_EQ(folders.items.size(), 2u);
    EXPECT_EQ(folders.items[1].label, 2) << labels[0];
    EXPECT_EQ(warnings.messages.front(), "set: left out 1 folder that cannot be read: 'b'");
    for (const std::string& message : warnings.messages) EXPECT_FALSE(contains(message, "is no class")) << message;
  }
}

TEST(UnreadableFolders, OfAClassAreAnErrorWhereTheFoldersAreTheClasses) {
  const FolderListing listing = listing_of({"a/1.png", "c/2.png"}, {"a", "b", "c"}, {"b"});
  EXPECT_EQ(error_of([&] { read_class_folders(listing, {.where = "set"}); }), "b: cannot be read");
}

TEST(UnreadableFolders, OfTheSplitAreNotReplacedByAnother) {
  const FolderListing listing =
      listing_of({"train/a/1.png", "val/a/2.png"}, {"test", "train", "train/a", "val", "val/a"}, {"test"});
  EXPECT_EQ(error_of([&] { read_class_folders(listing, {.where = "set"}); }), "test: cannot be read");
  EXPECT_EQ(error_of([&] { read_class_folders(listing, {.where = "set", .split = "Testing"}); }),
            "test: cannot be read");
  EXPECT_EQ(error_of([&] { splits_in(listing, "set"); }), "test: cannot be read");
  Warnings warnings;
  EXPECT_EQ(read_class_folders(listing, {.where = "set", .split = "val"}).items.front().path, "val/a/2.png");
  EXPECT_TRUE(warnings.messages.empty()) << warnings.messages.front();
}

TEST(UnreadableFolders, AloneAreTheError) {
  EXPECT_EQ(error_of([] { read_class_folders(listing_of({"1.png"}, {"a"}, {"a"}), {.where = "set"}); }),
            "a: cannot be read");
}

}  // namespace
}  // namespace vitrail::data
