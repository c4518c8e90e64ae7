// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/shared_images.h"

#include <map>
#include <set>

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

TEST(SharedImages, IdenticalFilesOfSeveralClassesContradict) {
  const fs::path root = testing::scratch_folder();
  for (const auto& [file, text] : std::map<std::string, std::string>{{"cat/a", "same"},
                                                                     {"cat/b", "same"},
                                                                     {"cat/c", "twin"},
                                                                     {"cat/d", "twin"},
                                                                     {"dog/a", "size"},
                                                                     {"dog/b", "same"},
                                                                     {"fox/a", "other"}})
    write_file(root / (file + ".png"), text);
  const auto dataset = open_dataset(root, {});
  const std::vector<int64_t> found = find_contradicting_labels({.dataset = *dataset});
  std::set<std::string> names;
  for (const int64_t i : found) names.insert(fs::path(dataset->path(i)).lexically_relative(root).string());
  EXPECT_EQ(names, (std::set<std::string>{"cat/a.png", "cat/b.png", "dog/b.png"}));
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
  EXPECT_TRUE(find_contradicting_labels({*dataset, {0, 1, 2, 3}, "x"}).empty()) << "one class";
  Warnings warnings;
  warn_of_contradicting_labels({.dataset = *dataset, .name = "training"});
  EXPECT_TRUE(warnings.any("3 training images have other labels than identical files: "));
  EXPECT_TRUE(warnings.any((root / "cat/a.png").string() + ", " + (root / "dog/b.png").string() + ", …"));
}

TEST(SharedImages, AFileThatAListHasTwiceIsNoCopyOfItself) {
  const fs::path root = testing::scratch_folder();
  for (const char* name : {"a.png", "b.png", "c.png"}) write_file(root / name, name[0] == 'c' ? "other" : "same");
  write_file(root / "twice.csv", "file,label\na.png,0\na.png,1\nc.png,1\n");
  write_file(root / "copy.csv", "file,label\na.png,0\nb.png,1\nc.png,1\n");
  EXPECT_TRUE(find_contradicting_labels({.dataset = *open_dataset(root / "twice.csv", {})}).empty());
  EXPECT_EQ(find_contradicting_labels({.dataset = *open_dataset(root / "copy.csv", {})}).size(), 2u);
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
