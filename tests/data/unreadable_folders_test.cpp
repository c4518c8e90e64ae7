// SPDX-License-Identifier: Apache-2.0
// Class folders with subfolders that cannot be read.  Listings stand for them, because root may read every folder.
#include "tests/data/support.h"
#include "vitrail/data/datasets/manifest_internal.h"

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

std::unique_ptr<Dataset> open(const FolderListing& listing, const DatasetOptions& options = {}) {
  return class_folder_manifest({"set", listing, images_below("")})->open(options);
}

TEST(UnreadableFolders, BelowAClassCostTheirImages) {
  const FolderListing listing =
      listing_of({"a/1.png", "b/2.png"}, {"a", "a/locked", "a/other", "b"}, {"a/locked", "a/other"});
  Warnings warnings;
  const auto dataset = open(listing);
  EXPECT_EQ(dataset->class_names(), (Paths{"a", "b"}));
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_EQ(warnings.messages, (Paths{"set: left out 2 folders that cannot be read: 'a/locked', 'a/other'"}));
}

// The labels of the other folders stay, also where folders are numbered.
TEST(UnreadableFolders, OfAClassAreLeftOutWhereTheModelHasTheClasses) {
  const FolderListing listing = listing_of({"a/1.png", "c/2.png"}, {"a", "b", "c"}, {"b"});
  for (const Paths& labels : {Paths{"a", "b", "c"}, Paths{"x", "y", "z"}}) {
    Warnings warnings;
    const auto dataset = open(listing, {.labels = labels, .num_classes = 3});
    ASSERT_EQ(dataset->size(), 2);
    EXPECT_EQ(dataset->label(1), 2) << labels[0];
    EXPECT_EQ(warnings.messages.front(), "set: left out 1 folder that cannot be read: 'b'");
    for (const std::string& message : warnings.messages) EXPECT_FALSE(contains(message, "is no class")) << message;
  }
}

TEST(UnreadableFolders, OfAClassAreAnErrorWhereTheFoldersAreTheClasses) {
  const FolderListing listing = listing_of({"a/1.png", "c/2.png"}, {"a", "b", "c"}, {"b"});
  EXPECT_EQ(error_of([&] { open(listing); }), "b: cannot be read");
}

TEST(UnreadableFolders, OfTheSplitAreNotReplacedByAnother) {
  const FolderListing listing =
      listing_of({"train/a/1.png", "val/a/2.png"}, {"test", "train", "train/a", "val", "val/a"}, {"test"});
  EXPECT_EQ(error_of([&] { open(listing); }),
            "set: expected images that can be read in the split test, got test: cannot be read");
  EXPECT_EQ(error_of([&] { open(listing, {.split = "Testing"}); }),
            "set: expected images that can be read in the split test, got test: cannot be read");
  EXPECT_EQ(error_of([&] {
              class_folder_manifest({"set", listing, images_below("")})->splits();
            }),
            "test: cannot be read");
  Warnings warnings;
  EXPECT_EQ(open(listing, {.split = "val"})->path(0), "val/a/2.png");
  EXPECT_TRUE(warnings.messages.empty()) << warnings.messages.front();
}

TEST(UnreadableFolders, AloneAreTheError) {
  EXPECT_EQ(error_of([] { open(listing_of({"1.png"}, {"a"}, {"a"})); }), "a: cannot be read");
}

}  // namespace
}  // namespace vitrail::data
