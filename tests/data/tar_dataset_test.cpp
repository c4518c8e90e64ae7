// SPDX-License-Identifier: Apache-2.0
// Class folders in tar archives, and CIFAR's files for Python on disk and in archives.
#include <zlib.h>

#include <array>
#include <nlohmann/json.hpp>

#include "tests/data/support.h"
#include "tests/data/tar_files.h"
#include "vitrail/data/datasets/cifar_batch_internal.h"
#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {
namespace {

TEST(TarDataset, HasTheRulesOfFoldersAndZips) {
  const fs::path root = testing::scratch_folder();
  const std::string archive =
      tar_of({"./wrapper/train/cat/1.png", "./wrapper/train/dog/2.png", "./wrapper/test/dog/3.png",
              "./wrapper/test/cat/._3.png", "./wrapper/test/cat/10.png", "./wrapper/test/cat/9.png"});
  write_file(root / "a.tar", archive);
  write_file(root / "b.tar.gz", gzipped(archive));
  write_file(root / "c.TGZ", gzipped(archive));
  for (const char* name : {"a.tar", "b.tar.gz", "c.TGZ"}) {
    EXPECT_EQ(dataset_splits(root / name), (Names{"test", "train"})) << name;
    const auto dataset = open_dataset(root / name, {});
    ASSERT_EQ(dataset->size(), 3) << name;
    EXPECT_EQ(dataset->class_names(), (Names{"cat", "dog"}));
    EXPECT_EQ(dataset->path(2), (root / name / "wrapper/test/dog/3.png").string());
    EXPECT_EQ(dataset->label(2), 1);
    EXPECT_EQ(dataset->get(0).image.width, 3);
    EXPECT_EQ(dataset->content_hash(0), dataset->content_hash(2));
    EXPECT_EQ(open_dataset(root / name, {.split = "train"})->size(), 2);
  }
}

TEST(TarDataset, OtherFilesAreErrors) {
  const fs::path root = testing::scratch_folder();
  const auto refusal = [&](const std::string& name, const std::string& content) {
    write_file(root / name, content);
    return error_of([&] { open_dataset(root / name, {}); });
  };
  EXPECT_TRUE(contains(refusal("a.tar", "text"), "a.tar: expected a tar archive"));
  EXPECT_TRUE(contains(refusal("a.tar", ""), "a.tar: expected a tar archive"));
  EXPECT_TRUE(contains(refusal("a.tar.gz", gzipped("text")), "a.tar.gz: expected a tar archive"));
  EXPECT_TRUE(contains(refusal("a.tar.gz", gzipped(tar_of({"a/1.png"})).substr(0, 100)), "truncated"));
  EXPECT_FALSE(refusal("a.tar", tar_entry("notes.txt", "text")).empty());
}

TEST(TarDataset, SymbolicLinksAreCounted) {
  const fs::path tar = testing::scratch_folder() / "a.tar";
  write_file(tar, tar_entry("cat/link.png", "", '2') + tar_of({"cat/1.png", "dog/2.png"}));
  const Warnings warnings;
  EXPECT_EQ(open_dataset(tar, {})->size(), 2);
  EXPECT_TRUE(warnings.any("a.tar: 1 symbolic links left out"));
}

TEST(TarDataset, WhatIsNotReadIsAWarning) {
  const fs::path tar = testing::scratch_folder() / "a.tar";
  const Warnings warnings;
  write_file(tar, tar_of({"cat/1.png", "dog/2.png"}) + tar_of({"cat/3.png"}));
  EXPECT_EQ(open_dataset(tar, {})->size(), 3);
  EXPECT_TRUE(warnings.messages.empty());
  write_file(tar, tar_of({"cat/1.png", "dog/2.png"}) + "text");
  EXPECT_EQ(open_dataset(tar, {})->size(), 2);
  EXPECT_TRUE(warnings.any("a.tar: 4 bytes after the end of the archive are not read"));
  write_file(tar, tar_of({"cat/1.png", "dog/2.png", "../cat/3.png", "dog/../cat/4.png", "a..b/..c.png"}));
  EXPECT_EQ(open_dataset(tar, {.split = "."})->size(), 2);
  EXPECT_TRUE(warnings.any("a.tar: 2 files left out, with a path out of the archive: '../cat/3.png', 'dog/../"));
  write_file(tar, tar_of({"cat/1.png", "dog/2.png", "cat/1.png", "./cat/1.png"}));
  EXPECT_EQ(open_dataset(tar, {})->size(), 2);
  EXPECT_TRUE(warnings.any("a.tar: 2 files left out, whose path comes again in the archive"));
}

class CifarPickle : public ::testing::Test {
 protected:
  static void expect_batch(const Dataset& dataset, int64_t first, const std::string& name) {
    const auto golden = nlohmann::json::parse(read_file(testing::fixture("data/cifar.json"))).at(name);
    for (int64_t i = 0; i < 2; ++i) {
      const Sample sample = dataset.get(first + i);
      const std::vector<uint8_t>& pixels = sample.image.pixels;
      EXPECT_EQ(sample.label, golden.at("labels").at(i)) << name;
      EXPECT_EQ(crc32(0, pixels.data(), static_cast<uInt>(pixels.size())), golden.at("crc32").at(i)) << name;
      EXPECT_EQ((std::vector<int>{pixels.begin() + 3 * (3 * 32 + 5), pixels.begin() + 3 * (3 * 32 + 5) + 3}),
                golden.at("pixel").at(i).get<std::vector<int>>());
    }
  }
};

TEST_F(CifarPickle, ImagesAreThoseOfPython) {
  for (const char* name : {"data/cifar-10-batches-py", "data/cifar-10-python.tar.gz"}) {
    EXPECT_EQ(dataset_splits(testing::fixture(name)), (Names{"test", "train"}));
    const auto train = open_dataset(testing::fixture(name), {.split = "train"});
    ASSERT_EQ(train->size(), 4) << name;
    EXPECT_EQ(train->class_names().at(6), "frog");
    EXPECT_TRUE(train->path(3).ends_with("data_batch_2#1")) << train->path(3);
    expect_batch(*train, 0, "cifar-10-batches-py/data_batch_1");
    expect_batch(*train, 2, "cifar-10-batches-py/data_batch_2");
    expect_batch(*open_dataset(testing::fixture(name), {}), 0, "cifar-10-batches-py/test_batch");
  }
  expect_batch(*open_dataset(testing::fixture("data/cifar-10-batches-py/data_batch_1"), {}), 0,
               "cifar-10-batches-py/data_batch_1");
}

TEST_F(CifarPickle, FilesBesideFoldersOfImagesAreNoDataset) {
  const fs::path root = testing::scratch_folder(), tar = testing::scratch_folder() / "x.tar";
  fs::copy(testing::fixture("data/cifar-10-batches-py"), root / "cifar-10-batches-py");
  place_images(root, {"cat/1.png", "dog/2.png"});
  ASSERT_EQ(std::system(("tar -C " + root.string() + " -cf " + tar.string() + " .").c_str()), 0);
  const Warnings warnings;
  EXPECT_EQ(open_dataset(tar, {})->class_names(), (Names{"cat", "dog"}));
}

TEST_F(CifarPickle, Cifar100HasFineLabels) {
  const fs::path folder = testing::fixture("data/cifar-100-python");
  const auto test = open_dataset(folder, {});
  EXPECT_EQ(test->class_names().size(), 100u);
  EXPECT_EQ(test->class_names()[7], "class 7");
  expect_batch(*test, 0, "cifar-100-python/test");
  expect_batch(*open_dataset(folder, {.split = "train"}), 0, "cifar-100-python/train");
}

TEST_F(CifarPickle, FoldersOfSplitsAreNotTakenForIt) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"train/cat/1.png", "train/dog/2.png", "test/cat/3.png"});
  EXPECT_EQ(open_dataset(root, {.split = "train"})->size(), 2);
  write_file(root / "text/train", "no pickle");
  place_images(root / "text", {"cat/1.png"});
  EXPECT_EQ(open_dataset(root / "text", {})->size(), 1);
}

// A pickle is a program: nothing of it runs.
TEST_F(CifarPickle, DamagedAndDangerousFilesAreErrors) {
  const fs::path file = testing::scratch_folder() / "test_batch";
  const std::string batch = read_file(testing::fixture("data/cifar-10-batches-py/test_batch"));
  const auto refusal = [&](std::string content) {
    write_file(file, content);
    return error_of([&] { open_dataset(file, {}); });
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string content = batch;
    const size_t at = content.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return content.replace(at, from.size(), to);
  };
  EXPECT_TRUE(contains(refusal(replaced("numpy\ndtype", "posix\nsystem")), "posix.system"));
  EXPECT_TRUE(contains(refusal(replaced("U\x04"
                                        "data",
                                        "U\x04"
                                        "date")),
                       "a dict with \"data\""));
  EXPECT_TRUE(contains(refusal(replaced("labels", "lapels")), "a dict with \"labels\""));
  EXPECT_TRUE(
      contains(refusal(replaced("K\x03K\x08", "K\x03K\x0a")), "test_batch#1: expected a label below 10, got 10"));
  EXPECT_TRUE(contains(refusal(replaced(std::string("K\x02M\0\x0c", 5), std::string("K\x03M\0\x0c", 5))),
                       "expected \"data\": an array uint8 [2, 3072]"));
  EXPECT_FALSE(refusal(batch.substr(0, 3000)).empty());
  EXPECT_FALSE(refusal("\x80\x02").empty());
  EXPECT_FALSE(refusal("").empty());
}

TEST(CifarPickles, HaveAProtocolFromTwoToFiveAndRowsOneAfterTheOther) {
  for (const int protocol : {0, 1, 2, 3, 4, 5, 6}) {
    const std::array<std::byte, 2> bytes{std::byte{0x80}, static_cast<std::byte>(protocol)};
    EXPECT_EQ(is_pickle(bytes), protocol >= 2 && protocol <= 5) << protocol;
  }
  std::ifstream stream(testing::fixture("data/cifar-10-batches-py/data_batch_1"), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  const size_t state = bytes.find(
      "tq\x12"
      "b\x89");  // the dtype is complete; False: not in Fortran order
  ASSERT_NE(state, bytes.npos);
  const fs::path folder = testing::scratch_folder();
  write_file(folder / "data_batch_1", bytes);
  EXPECT_EQ(open_dataset(folder / "data_batch_1", {})->size(), 2);
  bytes[state + 4] = '\x88';
  write_file(folder / "data_batch_1", bytes);
  EXPECT_TRUE(contains(error_of([&] { open_dataset(folder / "data_batch_1", {}); }), "another shape, order or type"));
}

TEST(TarDataset, HasTheContentsOfItsFiles) {
  const fs::path tar = testing::scratch_folder() / "a.tar";
  write_file(tar, tar_entry("cat/", "", '5') + tar_entry("empty/", "", '5') + tar_entry("cat/1.png", "abc") +
                      tar_entry("dog/2.png", "defg") + tar_entry("dog/x.txt", "x") + std::string(1024, '\0'));
  const Warnings warnings;
  const auto dataset = open_dataset(tar, {});
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->content_size(0), 3);
  EXPECT_EQ(dataset->content_size(1), 4);
  EXPECT_NE(dataset->content_hash(0), dataset->content_hash(1));
  EXPECT_TRUE(contains(error_of([&] { dataset->image(1); }), (tar / "dog/2.png").string()));
  EXPECT_EQ(warnings.messages, (Names{tar.string() + ": 1 file left out: 1 .txt",
                                      tar.string() + ": 1 folder without images is no class: 'empty'"}))
      << "and nothing of links";
  EXPECT_TRUE(dataset_splits(tar).empty());
}

}  // namespace
}  // namespace vitrail::data
