// SPDX-License-Identifier: Apache-2.0
// Datasets in single files: CSV, CIFAR's binary files, MNIST's IDX.
#include "tests/data/support.h"
#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {
namespace {

using Names = std::vector<std::string>;

TEST(CsvDataset, HeaderAndExtraColumnsInAnyOrderAreAccepted) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"in/a.png", "b.png"});
  write_file(root / "1.csv", "in/a.png,3,z\nb.png, 1 ,\"x, y\"\n");
  write_file(root / "2.csv", "image,class\r\nin/a.png,3\r\nb.png,1\r\n");
  write_file(root / "3.csv", "author,class_index,file\nme,3,in/a.png\nyou,1,b.png\n");
  for (const char* name : {"1.csv", "2.csv", "3.csv"}) {
    const auto dataset = open_dataset(root / name, {.num_classes = 4});
    ASSERT_EQ(dataset->size(), 2) << name;
    EXPECT_EQ(dataset->label(0), 3) << name;
    EXPECT_EQ(dataset->path(1), (root / "b.png").string()) << name;
    EXPECT_EQ(dataset->get(0).image.width, 3) << name;
  }
}

TEST(CsvDataset, ABadRowIsAnErrorThatNamesItsLine) {
  const fs::path csv = testing::scratch_folder() / "l.csv";
  const auto message = [&](const std::string& text, const DatasetOptions& options = {}) {
    write_file(csv, text);
    return error_of([&] { open_dataset(csv, options); });
  };
  EXPECT_TRUE(contains(message("file,class_index\na.png,1\nb.png\n"), "l.csv:3: expected a file and a label"));
  EXPECT_TRUE(
      contains(message("file,class_index\na.png,1\n\nb.png,cat\n"), "l.csv:4: expected a class index, got 'cat'"));
  EXPECT_TRUE(contains(message("file,class_index\na.png,-1\n"), "l.csv:2: expected a class index of at least 0"));
  EXPECT_TRUE(contains(message("file,class_index\na.png,1.5\n"), "l.csv:2"));
  EXPECT_TRUE(contains(message("a.png,cat\n", {.labels = {"x"}}), "class names of the model, got 'cat'"));
  EXPECT_TRUE(contains(message(",a.png\n"), "l.csv:1"));
  EXPECT_TRUE(
      contains(message("file,class_index\na.png,10\n", {.num_classes = 10}), "l.csv:2: expected a class index below"));
  EXPECT_TRUE(contains(message("a.png,9\nb.png,10\n", {.num_classes = 10}), "expected class indices, or class names"));
  EXPECT_TRUE(contains(message("file,class_index\n"), "rows of a file and a label, got none"));
  EXPECT_TRUE(contains(message(""), "got none"));
}

// A model of the folders 1 to 3 has "1" at index 0.
TEST(CsvDataset, NumbersAreLabelsOfAModelWhoseLabelsAreNumbers) {
  const fs::path csv = testing::scratch_folder() / "l.csv";
  const DatasetOptions model{.labels = {"1", "2", "10"}};
  for (const char* header : {"", "file,label\n", "file,class_id\n", "file,class_index\n"}) {
    write_file(csv, str(header, "a.png,10\nb.png,01\nc.png,2.0\n"));
    const auto dataset = open_dataset(csv, model);
    EXPECT_EQ(dataset->label(0), 2) << header;
    EXPECT_EQ(dataset->label(1), 0) << header;
    EXPECT_EQ(dataset->label(2), 1) << header;
  }
  write_file(csv, "a.png,10|1\n");
  EXPECT_EQ(open_dataset(csv, model)->labels(0), (std::vector<int64_t>{0, 2}));
  write_file(csv, "a.png,1\nb.png,3\n");
  EXPECT_TRUE(contains(error_of([&] { open_dataset(csv, model); }), "labels of the model: '1', '2', '10', got 1 of 2"));
}

TEST(CsvDataset, AnImageInRowsOfDifferentClassesIsAWarning) {
  const fs::path csv = testing::scratch_folder() / "l.csv";
  write_file(csv, "b.png,dog\na.png,cat\nb.png,dog\n");
  Warnings none;
  open_dataset(csv, {});
  EXPECT_TRUE(none.messages.empty());
  write_file(csv, "b.png,dog\na.png,cat\nb.png,cat\n");
  Warnings warnings;
  open_dataset(csv, {});
  EXPECT_TRUE(warnings.any("1 image is in rows of different classes, such as b.png"));
  write_file(csv, "b.png,dog\na.png,cat\nb.png,cat\na.png,dog\n");
  open_dataset(csv, {});
  EXPECT_TRUE(warnings.any("2 images are in rows of different classes, such as a.png"));
}

TEST(CsvDataset, ANulIsAnError) {
  const fs::path csv = testing::scratch_folder() / "l.csv";
  using namespace std::string_literals;
  for (const std::string& text : {"a.png\0.txt,0\n"s,
                                  "a\0,\0"
                                  "0\0\n\0"s,
                                  "\xFF\xFE"
                                  "a\0\0\0,\0"
                                  "0\0"s}) {
    write_file(csv, text);
    EXPECT_TRUE(contains(error_of([&] { open_dataset(csv, {}); }), "l.csv: expected text in UTF-8")) << text.size();
  }
}

TEST(CsvDataset, LabelsMayBeNames) {
  const fs::path root = testing::scratch_folder();
  for (const std::string text :
       {"a.png,dog\nb.png,cat 10\nc.png,cat 9\n", "Label;Image\rdog;a.png\rcat 10;b.png\rcat 9;c.png",
        "image_path\tclass\r\na.png\tdog\r\nb.png\t\"cat 10\"\r\nc.png\tcat 9\r\n"}) {
    write_file(root / "l.csv", text);
    const auto dataset = open_dataset(root / "l.csv", {});
    EXPECT_EQ(dataset->class_names(), (Names{"cat 9", "cat 10", "dog"})) << text;
    EXPECT_EQ(dataset->label(0), 2);
    EXPECT_EQ(dataset->label(1), 1);
    EXPECT_EQ(dataset->label(2), 0);
    EXPECT_EQ(dataset->path(0), (root / "a.png").string());
    const auto model = open_dataset(root / "l.csv", {.labels = {"Dog, hound", "x", "CAT_9", "cat 10"}});
    EXPECT_EQ(model->label(0), 0);
    EXPECT_EQ(model->label(1), 3);
    EXPECT_EQ(model->label(2), 2);
  }
}

TEST(CsvDataset, AFileOfGigabytesIsRefusedBeforeItIsRead) {
  const fs::path csv = testing::scratch_folder() / "l.csv";
  write_file(csv, "file,class_index\n");
  fs::resize_file(csv, 5'000'000'000);  // sparse
  EXPECT_TRUE(contains(error_of([&] { open_dataset(csv, {}); }), "l.csv: expected at most 1000000000 bytes"));
}

TEST(CsvDataset, APathMayHaveTheBackslashesOfWindows) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"cat/red.png"});
  write_file(root / "a\\b.png", "a name with a backslash");
  write_file(root / "list.csv", "file,label\ncat\\red.png,cat\na\\b.png,cat\n");
  const auto dataset = open_dataset(root / "list.csv", {});
  EXPECT_EQ(dataset->path(0), (root / "cat/red.png").string());
  EXPECT_GT(dataset->image(0).width, 0);
  EXPECT_EQ(dataset->path(1), (root / "a\\b.png").string());
}

TEST(CsvDataset, AMissingFileFailsAlone) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"a.png"});
  write_file(root / "l.csv", "gone.png,0\na.png,1\n");
  const auto dataset = open_dataset(root / "l.csv", {});
  EXPECT_TRUE(contains(error_of([&] { dataset->get(0); }), "gone.png"));
  EXPECT_EQ(dataset->get(1).label, 1);
}

// A record whose red, green and blue planes count upwards from different values.
std::string cifar_record(const std::string& labels, int red, int green, int blue) {
  std::string record = labels;
  for (const int start : {red, green, blue}) {
    for (int p = 0; p < 1024; ++p) record += static_cast<char>((start + p) & 255);
  }
  return record;
}

TEST(Cifar, PlanesBecomeInterleavedPixels) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "test_batch.bin", cifar_record("\x07", 0, 0, 0) + cifar_record("\x02", 10, 20, 30));
  const auto dataset = open_dataset(root, {});
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->class_names().size(), 10u);
  const Sample sample = dataset->get(1);
  EXPECT_EQ(sample.label, 2);
  EXPECT_EQ(sample.path, (root / "test_batch.bin#1").string());
  EXPECT_EQ(sample.image.width, 32);
  ASSERT_EQ(sample.image.pixels.size(), 3072u);
  for (int p = 0; p < 1024; ++p) {
    EXPECT_EQ(sample.image.pixels[3 * p], (10 + p) % 256);
    EXPECT_EQ(sample.image.pixels[3 * p + 1], (20 + p) % 256);
    EXPECT_EQ(sample.image.pixels[3 * p + 2], (30 + p) % 256);
  }
  const auto grey = open_dataset(root, {.decode = {.mode = image::ColorMode::grey}});
  EXPECT_EQ(grey->get(0).image.pixels[5], 5) << "equal channels stay as they are";
}

TEST(Cifar, ASplitIsAllOfItsFilesInOrder) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "data_batch_2.bin", cifar_record("\x02", 0, 0, 0));
  write_file(root / "data_batch_1.bin", cifar_record("\x01", 0, 0, 0));
  write_file(root / "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {}); }), "got these splits: train"));
  const auto dataset = open_dataset(root, {.split = "train"});
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->label(0), 1);
  EXPECT_EQ(dataset->label(1), 2);
  EXPECT_EQ(dataset->class_names()[9], "j");
}

TEST(Cifar, ClassNamesMayHaveTheLineEndsOfWindows) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "test_batch.bin", cifar_record("\x07", 0, 0, 0));
  write_file(root / "batches.meta.txt", "a\r\nb\r\nc\r\nd\r\ne\r\nf\r\ng\r\nh\r\ni\r\nj\r\n\r\n");
  const auto dataset = open_dataset(root, {});
  EXPECT_EQ(dataset->class_names()[0], "a");
  EXPECT_EQ(dataset->class_names()[9], "j");
}

TEST(Cifar, ClassNamesAreReadToALimit) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "test_batch.bin", cifar_record("\x07", 0, 0, 0));
  write_file(root / "batches.meta.txt", "");
  fs::resize_file(root / "batches.meta.txt", 5'000'000'000);  // sparse
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {}); }), "batches.meta.txt: expected at most 1048576 bytes"));
}

TEST(Cifar, Cifar100TakesTheFineLabel) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "test.bin", cifar_record("\x03\x63", 1, 2, 3));
  EXPECT_EQ(open_dataset(root, {})->label(0), 99);
  EXPECT_EQ(open_dataset(root, {})->get(0).image.pixels[2], 3);
  write_file(root / "renamed.bin", cifar_record("\x03\x63", 1, 2, 3));
  EXPECT_EQ(open_dataset(root / "renamed.bin", {})->label(0), 99)
      << "a file with another name is recognised by its size";
}

TEST(Cifar, TruncatedEmptyOrMislabelledFilesAreErrors) {
  const fs::path root = testing::scratch_folder();
  const fs::path file = root / "test_batch.bin";
  const std::string record = cifar_record("\x01", 0, 0, 0);
  const auto message = [&](const std::string& bytes, const DatasetOptions& options = {}) {
    write_file(file, bytes);
    return error_of([&] { open_dataset(file, options); });
  };
  EXPECT_TRUE(contains(message(record + record.substr(0, 3072)), "records of 3073 bytes, got 6145 bytes"));
  EXPECT_TRUE(contains(message(""), "got 0 bytes"));
  EXPECT_TRUE(contains(message(record + cifar_record("\x0a", 0, 0, 0)), "test_batch.bin#1: expected a label below 10"));
  EXPECT_TRUE(contains(message(record, {.num_classes = 1}), "a label below 1, got 1"));
  write_file(root / "other.bin", "12345");
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root / "other.bin", {}); }), "CIFAR-10 (3073 bytes)"));
}

std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string idx_images(uint32_t n, uint32_t height, uint32_t width) {
  std::string bytes = big_endian(0x803) + big_endian(n) + big_endian(height) + big_endian(width);
  for (uint32_t i = 0; i < n * height * width; ++i) bytes += static_cast<char>(i);
  return bytes;
}

std::string idx_labels(const std::string& labels) {
  return big_endian(0x801) + big_endian(static_cast<uint32_t>(labels.size())) + labels;
}

TEST(Idx, LabelsFileBelongsToTheImagesFile) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "t10k-images-idx3-ubyte", idx_images(2, 3, 5));
  write_file(root / "t10k-labels-idx1-ubyte", idx_labels("\x04\x01"));
  const auto rgb = open_dataset(root, {});
  ASSERT_EQ(rgb->size(), 2);
  EXPECT_EQ(rgb->class_names(), (Names{"0", "1", "2", "3", "4"}));
  EXPECT_EQ(rgb->get(0).label, 4);
  EXPECT_EQ(rgb->get(1).image.channels, 3);
  EXPECT_EQ(rgb->get(1).image.pixels[3 * 6 + 2], 15 + 6);
  const auto grey = open_dataset(root / "t10k-images-idx3-ubyte", {.decode = {.mode = image::ColorMode::grey}});
  const Sample sample = grey->get(1);
  EXPECT_EQ(sample.image.width, 5);
  EXPECT_EQ(sample.image.height, 3);
  EXPECT_EQ(sample.image.channels, 1);
  EXPECT_EQ(sample.image.pixels[6], 15 + 6);
  EXPECT_TRUE(
      contains(error_of([&] { open_dataset(root, {.split = "train"}); }), "a split train, got these splits: test"));
}

TEST(Idx, DamagedFilesAreErrors) {
  const fs::path root = testing::scratch_folder();
  const fs::path images = root / "train-images.idx3-ubyte", labels = root / "train-labels.idx1-ubyte";
  const auto message = [&](const std::string& image_bytes, const std::string& label_bytes) {
    write_file(images, image_bytes);
    write_file(labels, label_bytes);
    return error_of([&] { open_dataset(images, {.num_classes = 5}); });
  };
  const std::string good = idx_images(2, 3, 5);
  EXPECT_TRUE(
      contains(message(good.substr(0, good.size() - 1), idx_labels("ab")), "30 bytes after the header, got 29"));
  EXPECT_TRUE(contains(message(good.substr(0, 9), idx_labels("ab")), "an IDX header of 16 bytes"));
  EXPECT_TRUE(contains(message(idx_labels("ab") + good, idx_labels("ab")), "IDX magic 2051"));
  EXPECT_TRUE(contains(message("", ""), "got 0 bytes"));
  EXPECT_TRUE(contains(message(idx_images(0, 3, 5), idx_labels("")), "at least one element"));
  EXPECT_TRUE(contains(message(big_endian(0x803) + std::string(12, '\xff'), idx_labels("ab")),
                       "extents with a product below 2^63"));
  EXPECT_TRUE(contains(message(good, idx_labels("a")), "2 labels, one per image, got 1"));
  EXPECT_TRUE(contains(message(good, idx_labels("\x01\x05")), "labels.idx1-ubyte#1: expected a label below 5"));
  fs::remove(labels);
  EXPECT_TRUE(contains(error_of([&] { open_dataset(images, {}); }), "train-labels.idx1-ubyte"));
  write_file(root / "t10k-images-idx3-ubyte.gz", "\x1f\x8b broken");
  EXPECT_THROW(open_dataset(root / "t10k-images-idx3-ubyte.gz", {}), Error);
}

TEST(Idx, ASplitIsThatOfAWordInTheFilesName) {
  for (const std::string name : {"t10k", "test", "my-test-set", "emnist-letters-test"}) {
    const fs::path root = testing::scratch_folder();
    write_file(root / "train-images-idx3-ubyte", idx_images(3, 3, 5));
    write_file(root / "train-labels-idx1-ubyte", idx_labels("\x01\x02\x03"));
    write_file(root / (name + "-images-idx3-ubyte"), idx_images(2, 3, 5));
    write_file(root / (name + "-labels-idx1-ubyte"), idx_labels("\x04\x01"));
    EXPECT_EQ(open_dataset(root, {.split = "test"})->size(), 2) << name;
    EXPECT_EQ(open_dataset(root, {.split = "train"})->size(), 3) << name;
  }
}

TEST(Idx, AFolderHasTheSplitsOfItsFiles) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "train-images-idx3-ubyte", idx_images(3, 3, 5));
  write_file(root / "train-labels-idx1-ubyte", idx_labels("\x01\x02\x03"));
  write_file(root / "t10k-images-idx3-ubyte", idx_images(2, 3, 5));
  write_file(root / "t10k-labels-idx1-ubyte", idx_labels("\x04\x01"));
  write_file(root / "labels-of-images-without-axes", "x");
  EXPECT_EQ(open_dataset(root, {.split = "train"})->size(), 3);
  EXPECT_EQ(open_dataset(root, {.split = "test"})->size(), 2);
  EXPECT_EQ(open_dataset(root, {.split = "train"})->label(2), 3);
  // A file that is there with and without .gz is one.
  write_file(root / "train-images-idx3-ubyte.gz", "not read");
  write_file(root / "train-labels-idx1-ubyte.gz", "not read");
  EXPECT_EQ(open_dataset(root, {.split = "train"})->size(), 3);
  write_file(root / "more-train-images-idx3-ubyte", idx_images(1, 1, 1));
  const std::string message = error_of([&] { open_dataset(root, {.split = "train"}); });
  EXPECT_TRUE(contains(message, "one images file of the split train")) << message;
  EXPECT_TRUE(contains(message, "t10k-images-idx3-ubyte (test)")) << message;
}

}  // namespace
}  // namespace vitrail::data
