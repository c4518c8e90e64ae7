// SPDX-License-Identifier: Apache-2.0
// Class folders on disk and in archives.
#include <thread>

#include "tests/data/support.h"
#include "vitrail/data/dataset.h"

namespace vitrail::data {
namespace {

using Names = std::vector<std::string>;

std::vector<int64_t> labels_of(const Dataset& dataset) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < dataset.size(); ++i) labels.push_back(dataset.label(i));
  return labels;
}

Names paths_of(const Dataset& dataset, const fs::path& root) {
  Names paths;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    paths.push_back(fs::path(dataset.path(i)).lexically_relative(root).string());
  }
  return paths;
}

TEST(ClassFolders, AreClassesInSortedOrderWithoutLabels) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"dog/2.png", "dog/1.png", "a cat/9.png", "a/8.png"});
  fs::create_directories(root / "cow");
  const auto dataset = open_dataset(root, {});
  EXPECT_EQ(dataset->class_names(), (Names{"a", "a cat", "cow", "dog"})) << "an empty class keeps its index";
  EXPECT_EQ(paths_of(*dataset, root), (Names{"a/8.png", "a cat/9.png", "dog/1.png", "dog/2.png"}));
  EXPECT_EQ(labels_of(*dataset), (std::vector<int64_t>{0, 1, 3, 3}));
  const Sample sample = dataset->get(2);
  EXPECT_EQ(sample.image.width, 3);
  EXPECT_EQ(sample.image.height, 2);
  EXPECT_EQ(sample.image.pixels[0], 255);
  EXPECT_EQ(sample.image.pixels[1], 0);
}

TEST(ClassFolders, TakeTheIndicesOfTheLabelsTheyName) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"Dog/1.png", "n02123045/2.png"});
  const DatasetOptions options{.labels = {"zebra", "dog, hound", "tabby"}, .wordnet_ids = {"n1", "n2", "n02123045"}};
  const auto dataset = open_dataset(root, options);
  EXPECT_EQ(labels_of(*dataset), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(dataset->class_names(), options.labels);
}

TEST(ClassFolders, ThatNameNoLabelAreNumberedWithAWarning) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"cat/1.png", "dog/2.png"});
  Warnings warnings;
  const auto dataset = open_dataset(root, {.labels = {"dogs", "cats"}});
  EXPECT_EQ(labels_of(*dataset), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(dataset->class_names(), (Names{"cat", "dog"}));
  ASSERT_EQ(warnings.messages.size(), 1u);
  EXPECT_TRUE(contains(warnings.messages[0], "none of the 2 class folders names one of the model's 2 labels"));
}

TEST(ClassFolders, MoreThanTheModelsClassesAreAnError) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"a/1.png", "b/2.png", "c/3.png"});
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {.num_classes = 2}); }), "at most 2 class folders"));
  EXPECT_EQ(open_dataset(root, {.num_classes = 3})->size(), 3);
}

TEST(ClassFolders, SplitsAreTestElseValElseTheOneNamed) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"train/cat/1.png", "validation/cat/2.png", "extra/cat/4.png"});
  EXPECT_EQ(paths_of(*open_dataset(root, {}), root), Names{"validation/cat/2.png"});
  place_images(root, {"test/cat/3.png"});
  EXPECT_EQ(paths_of(*open_dataset(root, {}), root), Names{"test/cat/3.png"});
  EXPECT_EQ(paths_of(*open_dataset(root, {.split = "train"}), root), Names{"train/cat/1.png"});
  EXPECT_EQ(paths_of(*open_dataset(root, {.split = "val"}), root), Names{"validation/cat/2.png"});
  EXPECT_EQ(paths_of(*open_dataset(root, {.split = "extra"}), root), Names{"extra/cat/4.png"});
}

TEST(ClassFolders, AnUnknownSplitIsAnErrorThatListsThoseThatExist) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"train/cat/1.png", "val/cat/2.png"});
  const std::string message = error_of([&] { open_dataset(root, {.split = "dev"}); });
  EXPECT_TRUE(contains(message, "a split dev, got these splits: train, val")) << message;
  fs::remove_all(root / "val");
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {}); }), "these splits: train"))
      << "train is never the default";
}

TEST(ClassFolders, AClassCalledTrainIsNoSplit) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"car/1.png", "train/2.png"});
  EXPECT_EQ(open_dataset(root, {})->class_names(), (Names{"car", "train"}));
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {.split = "test"}); }), "a dataset without splits"));
}

TEST(ClassFolders, EmptyOrFlatFoldersAreErrors) {
  const fs::path root = testing::scratch_folder();
  EXPECT_THROW(open_dataset(root, {}), Error);
  place_images(root, {"1.png"});
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {}); }), "1 images and no folder"));
  fs::create_directories(root / "cat");
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {}); }), "images in the class folders"));
  place_images(root, {"cat/1.png"});
  Warnings warnings;
  EXPECT_EQ(open_dataset(root, {})->size(), 1);
  EXPECT_EQ(warnings.messages.size(), 1u) << "the image outside the class folders";
}

TEST(ClassFolders, AnUnreadableFileFailsAlone) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"cat/1.png", "cat/3.png"});
  write_file(root / "cat/2.png", "not an image");
  const auto dataset = open_dataset(root, {});
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->get(0).label, 0);
  EXPECT_TRUE(contains(error_of([&] { dataset->get(1); }), (root / "cat/2.png").string()));
  EXPECT_EQ(dataset->get(2).label, 0);
}

TEST(ClassArchive, ReadsStoredAndDeflatedEntriesUnderAWrapperFolder) {
  const fs::path zip = testing::fixture("data/wrapped.zip");
  const auto dataset = open_dataset(zip, {});
  EXPECT_EQ(dataset->class_names(), (Names{"cat", "dog"}));
  EXPECT_EQ(paths_of(*dataset, zip),
            (Names{"pets/cat/a.PNG", "pets/cat/b.png", "pets/cat/broken.png", "pets/dog/deep/c.png"}));
  EXPECT_EQ(labels_of(*dataset), (std::vector<int64_t>{0, 0, 0, 1}));
  EXPECT_EQ(dataset->image(0).pixels[0], 4);
  EXPECT_EQ(dataset->image(1).pixels[0], 1);
  EXPECT_TRUE(contains(error_of([&] { dataset->get(2); }), "wrapped.zip/pets/cat/broken.png"));
  EXPECT_EQ(dataset->image(3).pixels[2], 9);
}

TEST(ClassArchive, InvalidArchiveIsAnError) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "a.zip", "PK but no");
  EXPECT_THROW(open_dataset(root / "a.zip", {}), Error);
}

TEST(ClassArchiveConcurrent, ThreadsReadOneArchiveAtOnce) {
  const auto dataset = open_dataset(testing::fixture("data/wrapped.zip"), {});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        EXPECT_EQ(dataset->get(1).image.pixels[0], 1);
        EXPECT_EQ(dataset->get(3).image.pixels[0], 7);
        EXPECT_THROW(dataset->get(2), Error);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Dataset, UnknownPathsAndFormatsAreErrors) {
  const fs::path root = testing::scratch_folder();
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root / "gone", {}); }), "gone: expected a dataset"));
  write_file(root / "data.tar", "x");
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root / "data.tar", {}); }), "a file named otherwise"));
}

}  // namespace
}  // namespace vitrail::data
