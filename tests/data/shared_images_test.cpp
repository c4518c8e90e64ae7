// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/shared_images.h"

#include "tests/data/support.h"

namespace vitrail::data {
namespace {

// A folder of one class with a file per text.  The texts are hashed and not decoded.
fs::path folder_of(const std::vector<std::string>& texts) {
  const fs::path root = testing::scratch_folder();
  for (size_t i = 0; i < texts.size(); ++i) write_file(root / "cat" / str(i, ".png"), texts[i]);
  return root;
}

int64_t shared(const fs::path& first, const fs::path& second) {
  const auto a = open_dataset(first, {}), b = open_dataset(second, {});
  return find_shared_images({.dataset = *a}, {.dataset = *b}).count;
}

TEST(SharedImages, AreCountedByContentAndNotByName) {
  const fs::path train = folder_of({"one", "two", "three", "four"});
  EXPECT_EQ(shared(train, train), 4);
  EXPECT_EQ(shared(train, folder_of({"four", "five!", "ONE", "six", "three", "three"})), 3);
  EXPECT_EQ(shared(train, folder_of({"eno", "owt"})), 0) << "equal sizes";
  EXPECT_EQ(shared(folder_of({"x", "x"}), folder_of({"x"})), 1);
}

TEST(SharedImages, AFolderAndItsLinkAreTheSame) {
  const fs::path train = folder_of({"one", "two"});
  const fs::path link = testing::scratch_folder() / "link";
  fs::create_directory_symlink(train, link);
  EXPECT_EQ(shared(train, link), 2);
}

TEST(SharedImages, SamplesOfOneDatasetAreCompared) {
  const auto dataset = open_dataset(folder_of({"a", "b", "a", "c"}), {});
  const NamedSamples train{*dataset, {0, 1}, "training"};
  EXPECT_EQ(find_shared_images(train, {*dataset, {3}, "x"}).count, 0);
  EXPECT_EQ(find_shared_images(train, {*dataset, {2, 3}, "x"}).count, 1);
  Warnings warnings;
  warn_of_shared_images(train, {*dataset, {3}, "held-out"});
  EXPECT_TRUE(warnings.messages.empty());
  warn_of_shared_images(train, {*dataset, {2, 3}, "held-out"});
  EXPECT_TRUE(warnings.any("1 of 2 held-out images are also training images"));
}

TEST(SharedImages, AnArchiveHasTheContentOfItsFiles) {
  const auto zip = open_dataset(testing::fixture("data/wrapped.zip"), {});
  EXPECT_EQ(find_shared_images({.dataset = *zip}, {.dataset = *zip}).count, zip->size());
  const fs::path files = testing::scratch_folder();
  place_images(files, {"cat/red.png"});
  const auto folder = open_dataset(files, {});
  EXPECT_EQ(find_shared_images({.dataset = *zip}, {.dataset = *folder}).count, 0);
}

TEST(SharedImages, AFileThatIsGoneIsInNoSet) {
  const fs::path root = folder_of({"one", "two"});
  const auto dataset = open_dataset(root, {});
  fs::remove(root / "cat/0.png");
  EXPECT_EQ(find_shared_images({.dataset = *dataset}, {.dataset = *dataset}).count, 1);
}

}  // namespace
}  // namespace vitrail::data
