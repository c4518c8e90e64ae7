// SPDX-License-Identifier: Apache-2.0
// Class folders on disk and in archives.
#include <algorithm>
#include <iterator>
#include <thread>

#include "tests/data/support.h"
#include "vitrail/data/datasets/dataset.h"

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
  const auto dataset = open_dataset(root, {});
  EXPECT_EQ(dataset->class_names(), (Names{"a", "a cat", "dog"}));
  EXPECT_EQ(paths_of(*dataset, root), (Names{"a/8.png", "a cat/9.png", "dog/1.png", "dog/2.png"}));
  EXPECT_EQ(labels_of(*dataset), (std::vector<int64_t>{0, 1, 2, 2}));
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

TEST(ClassFolders, AreNumberedInOrderOnlyIfThereAreAsManyAsClasses) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"a/1.png", "b10/2.png", "b9/3.png"});
  for (const int64_t classes : {2, 4, 1000}) {
    const std::string message = error_of([&] { open_dataset(root, {.num_classes = classes}); });
    EXPECT_TRUE(contains(message, str("as many folders as its ", classes, " classes"))) << message;
    EXPECT_TRUE(contains(message, "'a', 'b9', 'b10'")) << message;
  }
  Warnings warnings;
  const auto dataset = open_dataset(root, {.num_classes = 3});
  EXPECT_EQ(dataset->class_names(), (Names{"a", "b9", "b10"}));
  EXPECT_EQ(labels_of(*dataset), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_TRUE(warnings.any("class indices follow the sorted order"));
}

// A folder such as "b_runs" is no class, and would shift those after it.
TEST(ClassFolders, AreNumberedWithoutEmptyOnes) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"a/1.png", "c/2.png"});
  fs::create_directories(root / "b_runs");
  Warnings warnings;
  EXPECT_EQ(labels_of(*open_dataset(root, {.num_classes = 2})), (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(warnings.any("1 folder without images is no class: 'b_runs'"));
  const std::string message = error_of([&] { open_dataset(root, {.num_classes = 3}); });
  EXPECT_TRUE(contains(message,
                       "as many folders as its 3 classes, got 2 class folders: 'a', 'c'; folders without "
                       "images are no classes: 'b_runs'"))
      << message;
  write_file(root / "b/1.heic", "x");
  EXPECT_EQ(labels_of(*open_dataset(root, {.num_classes = 3})), (std::vector<int64_t>{0, 2}))
      << "a folder of other images is a class";
}

TEST(ClassFolders, NamedByNumbersAreTheClassesOfTheseIndices) {
  for (const char* ten : {"10", "010", "0010"}) {
    const fs::path root = testing::scratch_folder();
    place_images(root, {str(ten, "/1.png"), "2/2.png"});
    const auto dataset = open_dataset(root, {.num_classes = 12});
    EXPECT_EQ(labels_of(*dataset), (std::vector<int64_t>{2, 10})) << ten;
    EXPECT_EQ(dataset->class_names().size(), 12u);
  }
}

TEST(ClassFolders, NamedByNumbersSortByValueWhereTheyDefineTheClasses) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"10/1.png", "9/1.png", "1/1.png", "2/1.png"});
  EXPECT_EQ(open_dataset(root, {})->class_names(), (Names{"1", "2", "9", "10"}));
}

// They would be two classes, and test images training images.
TEST(ClassFolders, ThatLookLikeSplitsAreNoClasses) {
  const std::vector<std::pair<std::string, std::string>> pairs{
      {"seg_train", "seg_test"}, {"train1", "test1"},
      {"train2017", "val2017"},  {"imagenet-train", "imagenet-val"},
      {"trainA", "testA"},       {"MyTrain", "MyTestData"},
      {"01 training", "02 dev"}, {"train_v2", "other"},
      {"fold1", "fold2"},        {"Fold_01", "Fold_10"}};
  for (const auto& [first, second] : pairs) {
    const fs::path root = testing::scratch_folder();
    place_images(root, {first + "/cat/1.png", first + "/dog/2.png", second + "/cat/3.png", second + "/dog/4.png"});
    for (const std::vector<std::string>& wanted : {Names{"train"}, Names{"test", "val"}}) {
      const std::string message = error_of([&] { open_dataset(root, {.default_splits = wanted}); });
      EXPECT_TRUE(contains(message, "folders that look like splits: ")) << first << message;
      EXPECT_TRUE(contains(message, first)) << message;
    }
    EXPECT_EQ(open_dataset(root, {.split = first})->class_names(), (Names{"cat", "dog"}));
    EXPECT_EQ(open_dataset(root, {.split = "."})->size(), 4);
  }
}

TEST(ClassFolders, WithTheWordOfASplitInTheirNameAreClasses) {
  const fs::path flat = testing::scratch_folder();
  place_images(flat, {"crash_test/1.png", "train station/2.png", "bus/3.png"});
  EXPECT_EQ(open_dataset(flat, {})->class_names().size(), 3u);
  const fs::path deep = testing::scratch_folder();
  place_images(deep, {"test_tube/old/1.png", "cup/2.png", "trainer/a/3.png", "latest/b/4.png"});
  EXPECT_EQ(open_dataset(deep, {})->class_names().size(), 4u);
  const fs::path folds = testing::scratch_folder();
  place_images(folds, {"fold1/1.png", "fold2/2.png", "folded/a/3.png"});
  EXPECT_EQ(open_dataset(folds, {})->class_names().size(), 3u);
  const fs::path named_folds = testing::scratch_folder();
  place_images(named_folds, {"fold1/a/1.png", "fold2/b/2.png"});
  EXPECT_EQ(open_dataset(named_folds, {.labels = {"fold2", "fold1"}})->label(0), 1);
  const fs::path named = testing::scratch_folder();
  place_images(named, {"crash_test/a/1.png", "train_station/b/2.png"});
  EXPECT_EQ(open_dataset(named, {.labels = {"train station", "crash test"}})->label(0), 1);
}

// Every name of a split, in several cases and with endings.
TEST(ClassFolders, SplitsAreKnownUnderManyNames) {
  const std::vector<std::pair<std::string, Names>> names{
      {"train", {"train", "Training", "TRAIN", "training_set", "training-set", "Train Set", "trn", "train_images"}},
      {"val", {"val", "Valid", "VALIDATION", "dev", "Dev_Set", "eval", "evaluation", "valid-data"}},
      {"test", {"test", "Testing", "TEST", "test_set", "testset", "Test-Images"}}};
  for (const auto& [split, folders] : names) {
    for (const std::string& folder : folders) {
      const fs::path root = testing::scratch_folder();
      const std::string other = split == "train" ? "Test" : "Train";
      place_images(root, {folder + "/cat/1.png", folder + "/dog/2.png", other + "/cat/3.png"});
      const auto dataset = open_dataset(root, {.split = split});
      EXPECT_EQ(dataset->split(), folder);
      EXPECT_EQ(paths_of(*dataset, root), (Names{folder + "/cat/1.png", folder + "/dog/2.png"}));
      EXPECT_EQ(open_dataset(root, {.default_splits = {split}})->split(), folder);
      EXPECT_TRUE(dataset_splits(root) == (split == "train" ? Names{"test", "train"}
                                           : split == "val" ? Names{"train", "val"}
                                                            : Names{"test", "train"}))
          << folder;
    }
  }
}

TEST(ClassFolders, SplitsAreTestElseValElseTheOneNamed) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"train/cat/1.png", "validation/cat/2.png"});
  EXPECT_EQ(paths_of(*open_dataset(root, {}), root), Names{"validation/cat/2.png"});
  place_images(root, {"test/cat/3.png"});
  EXPECT_EQ(paths_of(*open_dataset(root, {}), root), Names{"test/cat/3.png"});
  EXPECT_EQ(paths_of(*open_dataset(root, {.split = "train"}), root), Names{"train/cat/1.png"});
  EXPECT_EQ(paths_of(*open_dataset(root, {.split = "val"}), root), Names{"validation/cat/2.png"});
  place_images(root, {"extra/cat/4.png"});
  EXPECT_EQ(paths_of(*open_dataset(root, {.split = "extra"}), root), Names{"extra/cat/4.png"});
  const std::string message = error_of([&] { open_dataset(root, {}); });
  EXPECT_TRUE(contains(message, "splits: test, train, validation, beside other folders: extra")) << message;
}

TEST(ClassFolders, AnUnknownOrAmbiguousSplitIsAnErrorThatListsThoseThatExist) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"train/cat/1.png", "val/cat/2.png"});
  const std::string message = error_of([&] { open_dataset(root, {.split = "extra"}); });
  EXPECT_TRUE(contains(message, "a split extra, got these splits: train, val")) << message;
  fs::rename(root / "val", root / "dev");
  place_images(root, {"Valid/cat/3.png"});
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {}); }), "got Valid, dev"));
  EXPECT_EQ(open_dataset(root, {.split = "dev"})->split(), "dev");
  place_images(root, {"val/cat/4.png"});
  EXPECT_TRUE(
      contains(error_of([&] { open_dataset(root, {}); }), "one split val (or its exact name), got Valid, dev, "));
  EXPECT_EQ(open_dataset(root, {.split = "val"})->split(), "val");
  for (const char* name : {"dev", "Valid", "val"}) fs::remove_all(root / name);
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {}); }), "these splits: train"))
      << "train is never the default";
}

TEST(ClassFolders, FoldersThatLookLikeSplitsButAreNoneAreAnErrorThatListsThem) {
  for (const std::string name : {"train", "Test", "DEV"}) {
    const fs::path root = testing::scratch_folder();
    place_images(root, {"car/1.png", name + "/2.png"});
    const std::string message = error_of([&] { open_dataset(root, {}); });
    EXPECT_TRUE(contains(message, name + " (with images directly in it), beside other folders: car")) << message;
    EXPECT_EQ(open_dataset(root, {.split = "."})->size(), 2) << "unless they are said to be classes";
    const DatasetOptions model{.labels = {"car", name}};
    EXPECT_EQ(labels_of(*open_dataset(root, model)), (std::vector<int64_t>{0, 1})) << "or are the model's classes";
  }
}

TEST(ClassFolders, SplitsInsideTheClassesAreAnError) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"cat/train/1.png", "cat/test/2.png", "dog/train/3.png"});
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {}); }), "splits in them: test, train"));
  EXPECT_EQ(open_dataset(root, {.split = "."})->size(), 3);
  const fs::path one = testing::scratch_folder();
  place_images(one, {"cat/train/1.png", "dog/train/2.png"});
  EXPECT_EQ(open_dataset(one, {})->size(), 2) << "one name alone is no split";
}

TEST(ClassFolders, AFolderAroundClassesOrSplitsIsEntered) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"archive/pets/cat/1.png", "archive/pets/dog/2.png"});
  EXPECT_EQ(open_dataset(root, {})->class_names(), (Names{"cat", "dog"}));
  const fs::path splits = testing::scratch_folder();
  place_images(splits, {"archive/Train/images/cat/1.png", "archive/Train/images/dog/2.png", "archive/Test/cat/3.png"});
  const auto train = open_dataset(splits, {.split = "train"});
  EXPECT_EQ(train->class_names(), (Names{"cat", "dog"}));
  EXPECT_EQ(train->split(), "archive/Train");
  EXPECT_EQ(dataset_splits(splits), (Names{"test", "train"}));
  const fs::path one = testing::scratch_folder();
  place_images(one, {"tabby/deep/1.png"});
  EXPECT_EQ(labels_of(*open_dataset(one, {.labels = {"zebra", "tabby"}})), std::vector<int64_t>{1})
      << "a class of the model is no wrapper";
}

// A folder "1" around the classes would be the second class.
TEST(ClassFolders, AFolderAroundClassesMayHaveTheNameOfOne) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"1/cat/1.png", "1/dog/2.png", "1/other/3.png"});
  fs::remove_all(root / "1/other");
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {.labels = {"dog", "cat"}}); }), "got '1', which has the "));
  EXPECT_EQ(labels_of(*open_dataset(root, {.split = ".", .labels = {"dog", "cat"}})), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(labels_of(*open_dataset(root, {.labels = {"x", "y"}})), (std::vector<int64_t>{1, 1})) << "a class";
  const auto refusal = [](const std::vector<std::string>& images, const DatasetOptions& options) {
    const fs::path folder = testing::scratch_folder();
    place_images(folder, images);
    EXPECT_GT(open_dataset(folder, {.split = ".", .labels = options.labels, .num_classes = 3})->size(), 0);
    const std::string message = error_of([&] { open_dataset(folder, options); });
    return message.substr(std::min(folder.string().size(), message.size()));
  };
  EXPECT_EQ(refusal({"2/0/1.png", "2/1/2.png"}, {.num_classes = 3}),
            ": expected class folders, or one folder around them that has no class's name, got '2', which has the "
            "folders '0', '1'; open it instead, or name the split \".\" if it is a class");
  EXPECT_TRUE(contains(refusal({"cat/dog/1.png", "cat/cow/2.png", "cat/x/3.png"}, {.labels = {"cat", "dog", "cow"}}),
                       "got 'cat', which has the folders 'cow', 'dog', 'x'"));
  const fs::path twice = testing::scratch_folder();
  place_images(twice, {"cat/cat/1.png"});
  EXPECT_EQ(labels_of(*open_dataset(twice, {.labels = {"dog", "cat"}})), std::vector<int64_t>{1});
}

TEST(ClassFolders, FoldersWithoutImagesAreNoClasses) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"cat/1.png", "dog/2.png", ".ipynb_checkpoints/x/3.png"});
  fs::create_directories(root / "runs");
  fs::create_directories(root / "run10");
  write_file(root / "run1/model/config.json", "{}");
  write_file(root / "run1/metrics.csv", "step");
  Warnings warnings;
  EXPECT_EQ(open_dataset(root, {})->class_names(), (Names{"cat", "dog"}));
  EXPECT_TRUE(warnings.any("3 folders without images are no classes: 'run1', 'run10', 'runs'"));
  EXPECT_TRUE(warnings.any("2 files left out: 1 .csv, 1 .json"));
}

TEST(ClassFolders, AClassWithoutReadableImagesIsAnErrorOrForAModelAWarning) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"a/1.png"});
  for (const char* file : {"b/1.HEIC", "b/2.heic", "b/3.svg", "c/4.avif", "a/5.txt"}) write_file(root / file, "x");
  const std::string message = error_of([&] { open_dataset(root, {}); });
  EXPECT_TRUE(contains(message, "none in b (3 files left out: 2 .heic, 1 .svg), c (1 file left out: 1 .avif)"))
      << message;
  Warnings warnings;
  EXPECT_EQ(open_dataset(root, {.labels = {"a", "b", "c"}})->size(), 1);
  EXPECT_TRUE(warnings.any("class folders without an image that can be read: b (3 files"));
  EXPECT_TRUE(warnings.any("5 files left out: 2 .heic, 1 .avif, 1 .svg, 1 .txt"));
}

TEST(ClassFolders, SystemFilesAreLeftOutWithoutAWord) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"a/1.png", "b/2.png", "a/._1.png", "__MACOSX/a/._1.png", "__MACOSX/c/1.png"});
  for (const char* file : {"a/.DS_Store", "b/Thumbs.db", "desktop.ini"}) write_file(root / file, "x");
  for (const std::string folder : {"@eaDir", "#recycle", "#snapshot", "@Recycle", "@Recently-Snapshot", "$RECYCLE.BIN",
                                   "RECYCLER", "RECYCLED", "System Volume Information", "lost+found", ".thumbnails"})
    place_images(root, {folder + "/c/1.png", "a/" + folder + "/1.png"});
  Warnings warnings;
  EXPECT_EQ(open_dataset(root, {})->size(), 2);
  EXPECT_EQ(open_dataset(root, {})->class_names().size(), 2u);
  EXPECT_TRUE(warnings.messages.empty()) << warnings.messages.front();
}

TEST(ClassFolders, NamesAreComparedInUnicodesComposedForm) {
  const std::string composed = "caf\u00e9", decomposed = "cafe\u0301";
  const fs::path root = testing::scratch_folder();
  place_images(root, {decomposed + "/1.png", "tea/2.png"});
  EXPECT_EQ(open_dataset(root, {})->class_names(), (Names{composed, "tea"}));
  EXPECT_EQ(labels_of(*open_dataset(root, {.labels = {"tea", composed}})), (std::vector<int64_t>{1, 0}));
  place_images(root, {composed + "/3.png"});
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {}); }), "in two Unicode forms"));
}

TEST(ClassFolders, SummaryTellsImagesSplitAndClasses) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"Training/cat/1.png", "Training/dog/2.png", "Training/dog/3.png", "Testing/cat/1.png"});
  EXPECT_EQ(summary(*open_dataset(root, {.split = "train"}), "pets"), "3 images of pets/Training, 2 classes: cat, dog");
  EXPECT_EQ(summary(*open_dataset(root, {}), "pets"), "1 image of pets/Testing, 1 class: cat");
}

TEST(ClassFolders, SummaryListsTenClasses) {
  for (const int classes : {9, 10, 11, 12}) {
    const fs::path root = testing::scratch_folder();
    std::string listed;
    for (int c = 0; c < classes; ++c) {
      const std::string name = str("c", 10 + c);
      place_images(root, {name + "/1.png"});
      if (c < 10) listed += (c > 0 ? ", " : "") + name;
    }
    const std::string more = classes > 10 ? str(" and ", classes - 10, " more") : "";
    EXPECT_EQ(summary(*open_dataset(root, {}), "x"),
              str(classes, " images of x, ", classes, " classes: ", listed, more));
  }
}

TEST(ClassFolders, EmptyOrFlatFoldersAreErrors) {
  const fs::path root = testing::scratch_folder();
  EXPECT_THROW(open_dataset(root, {}), Error);
  place_images(root, {"1.png"});
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {}); }),
                       "class folders with images in them, or a list of images and labels, got 1 image outside"));
  fs::create_directories(root / "cat");
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {}); }), "class folders with images in them"));
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

// Some Windows programs write backslashes.
TEST(ClassArchive, NamesWithBackslashesAreRead) {
  std::ifstream stream(testing::fixture("data/wrapped.zip"), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  for (const std::string name : {"pets/cat/", "pets/dog/deep/", "pets/"}) {
    std::string other = name;
    std::replace(other.begin(), other.end(), '/', '\\');
    for (size_t at = bytes.find(name); at != bytes.npos; at = bytes.find(name)) bytes.replace(at, name.size(), other);
  }
  const fs::path zip = testing::scratch_folder() / "windows.zip";
  write_file(zip, bytes);
  const auto dataset = open_dataset(zip, {});
  EXPECT_EQ(dataset->class_names(), (Names{"cat", "dog"}));
  EXPECT_EQ(labels_of(*dataset), (std::vector<int64_t>{0, 0, 0, 1}));
  EXPECT_EQ(dataset->image(0).pixels[0], 4);
  EXPECT_EQ(dataset->image(3).pixels[2], 9);
}

TEST(ClassArchive, NamesMayBeginAtTheRoot) {
  std::ifstream stream(testing::fixture("data/wrapped.zip"), std::ios::binary);
  const std::string original{std::istreambuf_iterator<char>(stream), {}};
  for (const std::string begin : {"./ts/", "/ets/", ".//s/"}) {
    std::string bytes = original;
    for (size_t at = bytes.find("pets/"); at != bytes.npos; at = bytes.find("pets/")) bytes.replace(at, 5, begin);
    const fs::path zip = testing::scratch_folder() / "rooted.zip";
    write_file(zip, bytes);
    const auto dataset = open_dataset(zip, {});
    EXPECT_EQ(dataset->class_names(), (Names{"cat", "dog"})) << begin;
    EXPECT_EQ(dataset->image(3).pixels[2], 9) << begin;
  }
}

// Replaces the bytes at an offset in the directory entry of a file.
std::string with_directory_bytes(std::string archive, const std::string& name, size_t offset,
                                 const std::string& bytes) {
  for (size_t at = archive.find("PK\1\2"); at != archive.npos; at = archive.find("PK\1\2", at + 1)) {
    if (archive.compare(at + 46, name.size(), name) == 0) archive.replace(at + offset, bytes.size(), bytes);
  }
  return archive;
}

TEST(ClassArchive, WhatIsLeftOutIsAWarning) {
  std::ifstream stream(testing::fixture("data/wrapped.zip"), std::ios::binary);
  const std::string original{std::istreambuf_iterator<char>(stream), {}};
  const fs::path zip = testing::scratch_folder() / "a.zip";
  const Warnings warnings;
  std::string unix_link = with_directory_bytes(original, "pets/cat/b.png", 5, "\3");
  write_file(zip, with_directory_bytes(unix_link, "pets/cat/b.png", 41, "\xa1"));
  EXPECT_EQ(open_dataset(zip, {})->size(), 3);
  EXPECT_TRUE(warnings.any("a.zip: 1 symbolic links left out"));
  std::string outside = original;
  for (size_t at = outside.find("pets/cat/b."); at != outside.npos; at = outside.find("pets/cat/b."))
    outside.replace(at, 11, "pets/../xb.");
  write_file(zip, outside);
  EXPECT_EQ(open_dataset(zip, {})->size(), 3);
  EXPECT_TRUE(warnings.any("a.zip: 1 file left out, with a path out of the archive: 'pets/../xb.png'"));
}

TEST(ClassArchive, ImagesThatCannotBeReadAreOneError) {
  std::ifstream stream(testing::fixture("data/wrapped.zip"), std::ios::binary);
  const std::string original{std::istreambuf_iterator<char>(stream), {}};
  const fs::path zip = testing::scratch_folder() / "a.zip";
  const std::string lzma = with_directory_bytes(original, "pets/cat/a.PNG", 10, "\x0e");
  write_file(zip, with_directory_bytes(lzma, "pets/cat/b.png", 8, "\1"));
  EXPECT_EQ(error_of([&] { open_dataset(zip, {}); }),
            zip.string() +
                ": expected images that are stored or deflated, without encryption, got 2 of 4 otherwise: "
                "'pets/cat/a.PNG', 'pets/cat/b.png'");
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
  write_file(root / "data.h5", "x");
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root / "data.h5", {}); }), "a file named otherwise"));
}

TEST(ClassFolders, HiddenFilesAndFoldersAreNoImages) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"cat/1.png", "dog/2.png", ".hidden/3.png", "cat/.4.png", "dog/.thumbnails/5.png",
                      "dog/more/.git/6.png", "dog/more/7.png"});
  const auto dataset = open_dataset(root, {});
  EXPECT_EQ(dataset->class_names(), (Names{"cat", "dog"}));
  EXPECT_EQ(paths_of(*dataset, root), (Names{"cat/1.png", "dog/2.png", "dog/more/7.png"}));
}

TEST(ClassFolders, MessagesTellWhatThereIs) {
  const auto refusal = [](const std::vector<std::string>& images, const std::vector<std::string>& others,
                          const DatasetOptions& options = {}) {
    const fs::path root = testing::scratch_folder();
    place_images(root, images);
    for (const std::string& path : others) write_file(root / path, "x");
    const std::string message = error_of([&] { open_dataset(root, options); });
    return message.substr(std::min(root.string().size() + 2, message.size()));
  };
  const std::string wanted = "expected class folders with images in them, or a list of images and labels, got ";
  EXPECT_EQ(refusal({}, {}), wanted + "none");
  EXPECT_EQ(refusal({}, {"a.txt"}), wanted + "none (1 file left out: 1 .txt)");
  EXPECT_EQ(refusal({}, {"a/b.txt"}), wanted + "folders without images (1 file left out: 1 .txt)");
  EXPECT_EQ(refusal({}, {"a/b.heic"}), wanted + "folders without images (1 file left out: 1 .heic)");
  EXPECT_EQ(refusal({"1.png", "2.png"}, {}), wanted + "2 images outside them");
  EXPECT_EQ(
      refusal({"a/1.png", "b/2.png"}, {}, {.num_classes = 3}),
      "expected folders named after the classes of the model or their indices, or as many folders as its 3 classes, "
      "got 2 class folders: 'a', 'b'");
  EXPECT_EQ(refusal({"train/a/1.png", "val/a/2.png"}, {}, {.split = "test"}),
            "expected a split test, got these splits: train, val");
  EXPECT_EQ(refusal({"a/1.png", "b/2.png"}, {}, {.split = "test"}),
            "expected a split test, got a dataset without splits");
  EXPECT_EQ(refusal({"train/a/1.png", "trn/a/2.png"}, {}, {.split = "training"}),
            "expected one split training (or its exact name), got train, trn");
  EXPECT_EQ(refusal({"train/a/1.png", "extra/a/2.png"}, {}, {.default_splits = {"val", "test"}}),
            "expected either splits of class folders or class folders, got folders that are named as splits: train, "
            "beside other folders: extra; name the split to read, or \".\" if all of them are classes");
  EXPECT_EQ(
      refusal({"train/a/1.png", "trn/2.png"}, {}),
      "expected either splits of class folders or class folders, got folders that are named as splits: train, trn "
      "(with images directly in it); name the split to read, or \".\" if all of them are classes");
  EXPECT_EQ(refusal({"train/a/1.png"}, {}, {.default_splits = {"val", "test"}}),
            "expected a split val or test, or another by --split NAME (train: --set data.train_split=NAME), got these "
            "splits: train");
  EXPECT_EQ(
      refusal({"seg_train/a/1.png", "seg_test/a/2.png"}, {}),
      "expected splits called train, val or test above the class folders, or class folders, got folders that look "
      "like splits: seg_test, seg_train; name the split to read, or \".\" if all folders are classes");
  EXPECT_EQ(refusal({"a/train/1.png", "a/test/2.png"}, {}, {.labels = {"a"}}),
            "expected splits above the class folders, got splits in them: test, train; move them up, or name the split "
            "\".\" to take their images together");
}

TEST(ClassFolders, WarningsCountAndName) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"a/1.png", "b/2.png", "3.png", "4.png"});
  fs::create_directories(root / "c");
  write_file(root / "a/x.txt", "x");
  Warnings warnings;
  EXPECT_EQ(open_dataset(root, {.num_classes = 2})->size(), 2);
  const std::string begin = root.string() + ": ";
  EXPECT_EQ(warnings.messages,
            (Names{begin + "1 file left out: 1 .txt", begin + "1 folder without images is no class: 'c'",
                   begin + "2 images outside the class folders are ignored",
                   begin + "none of the 2 class folders names one of the model's 2 classes; class indices follow the "
                           "sorted order of the folders"}));
}

TEST(ClassFolders, ClassesOfAModelWithoutNamesAreItsIndices) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"0/1.png", "2/2.png"});
  EXPECT_EQ(open_dataset(root, {.num_classes = 3})->class_names(), (Names{"0", "1", "2"}));
  const fs::path ids = testing::scratch_folder();
  place_images(ids, {"n2/1.png"});
  EXPECT_EQ(open_dataset(ids, {.wordnet_ids = {"n1", "n2"}, .num_classes = 2})->class_names(), (Names{"n1", "n2"}));
  EXPECT_EQ(labels_of(*open_dataset(ids, {.wordnet_ids = {"n1", "n2"}, .num_classes = 2})), std::vector<int64_t>{1});
}

TEST(ClassFolders, OnlyFoldersOfClassFoldersAreSplits) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"train/1.png", "test/a/2.png"});
  EXPECT_EQ(dataset_splits(root), Names{"test"}) << "train has images directly in it";
  const fs::path other = testing::scratch_folder();
  place_images(other, {"extra/a/1.png", "dev/a/2.png", ".test/a/3.png"});
  EXPECT_EQ(dataset_splits(other), Names{"val"});
}

}  // namespace
}  // namespace vitrail::data
