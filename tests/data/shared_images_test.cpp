// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/loader/shared_images.h"

#include <functional>
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

// Contents without files: sample i has the size and the hash of `content(i)`, and the label i % 3.
class Contents : public Dataset {
 public:
  Contents(int64_t size, std::function<int64_t(int64_t)> content) : size_(size), content_(std::move(content)) {}
  int64_t size() const override { return size_; }
  std::string path(int64_t i) const override { return str("x/", i); }
  int64_t label(int64_t i) const override { return i % 3; }
  image::Image image(int64_t) const override { return image::make_image(1, 1, 1); }
  int64_t content_size(int64_t i) const override {
    asked.push_back(i);
    return content_(i) < 0 ? -1 : content_(i) % 1000;
  }
  uint64_t content_hash(int64_t i) const override {
    if (content_(i) == 5) throw Error(path(i), "a file", "none");
    return static_cast<uint64_t>(content_(i));
  }
  mutable std::vector<int64_t> asked;

 private:
  int64_t size_;
  std::function<int64_t(int64_t)> content_;
};

TEST(SharedImages, OfManyTwoThousandAreLookedFor) {
  const Contents all(150'000, [](int64_t i) { return i; });
  for (const auto& [size, compared] : {std::pair<int64_t, int64_t>{50'000, 50'000}, {50'001, 2000}}) {
    const Contents second(size, [](int64_t i) { return i % 2 == 0 ? i : i + 1'000'000; });
    const SharedImages shared = find_shared_images({.dataset = all}, {.dataset = second});
    EXPECT_EQ(shared.compared, compared) << size;
    // Half of the indices that are looked for are even, or nearly: they are not exactly 25 apart.
    EXPECT_NEAR(static_cast<double>(shared.count), static_cast<double>(compared) / 2, size == 50'000 ? 1 : 30) << size;
    ASSERT_EQ(std::ssize(second.asked), compared);
    EXPECT_EQ(second.asked.front(), 0);
    EXPECT_EQ(second.asked[1], size / compared);
    EXPECT_EQ(second.asked.back(), size == compared ? size - 1 : (compared - 1) * size / compared);
  }
}

TEST(SharedImages, WithoutASizeOrAHashAreInNoSet) {
  const Contents unknown(4, [](int64_t) { return -1; }), broken(4, [](int64_t) { return 5; }),
      equal(4, [](int64_t) { return 7; });
  const auto count = [](const Dataset& a, const Dataset& b) {
    return find_shared_images({.dataset = a}, {.dataset = b}).count;
  };
  EXPECT_EQ(count(unknown, unknown), 0);
  EXPECT_EQ(count(broken, broken), 0);
  EXPECT_EQ(count(equal, equal), 4);
  EXPECT_TRUE(find_contradicting_labels({.dataset = unknown}).empty());
  EXPECT_TRUE(find_contradicting_labels({.dataset = broken}).empty());
  EXPECT_EQ(find_contradicting_labels({.dataset = equal}), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_TRUE(find_contradicting_labels({equal, {0, 3}, "x"}).empty()) << "of one label";
  EXPECT_EQ(find_contradicting_labels({equal, {2, 3}, "x"}), (std::vector<int64_t>{2, 3}));
}

TEST(SharedImages, TwentyThousandAreSearchedForContradictions) {
  for (const int64_t size : {20'000, 20'001, 40'000}) {
    const Contents dataset(size, [](int64_t i) { return i; });
    EXPECT_TRUE(find_contradicting_labels({.dataset = dataset}).empty());
    EXPECT_EQ(std::ssize(dataset.asked), 20'000) << size;
    EXPECT_EQ(dataset.asked.back(), 19'999 * size / 20'000);
  }
}

TEST(SharedImages, WarningsCountAndNameThem) {
  const Contents equal(3, [](int64_t) { return 7; });
  const Warnings warnings;
  warn_of_shared_images({equal, {0}, "training"}, {equal, {1, 2}, "test"});
  warn_of_contradicting_labels({equal, {0, 1}, "held-out"});
  warn_of_contradicting_labels({.dataset = equal, .name = "training"});
  warn_of_contradicting_labels({equal, {0}, "training"});
  warn_of_repeated_images({.dataset = equal, .name = "training"});
  warn_of_repeated_images({equal, {1}, "training"});
  EXPECT_EQ(warnings.messages,
            (std::vector<std::string>{
                "2 of 2 test images are also training images (identical files): accuracies on them are too high",
                "2 held-out images have other labels than identical files: x/0, x/1",
                "3 training images have other labels than identical files: x/0, x/1, …",
                "2 of 3 training images repeat others (identical files): cross-validated accuracies on them are too "
                "high"}));
}

}  // namespace
}  // namespace vitrail::data
