// SPDX-License-Identifier: Apache-2.0
// Which format a path has, and edges of the formats: CIFAR's pickles and names, compressed IDX files, lists.
#include <zlib.h>

#include <map>

#include "tests/data/support.h"
#include "vitrail/data/datasets/cifar_batch_internal.h"
#include "vitrail/data/datasets/manifest_internal.h"
#include "vitrail/data/datasets/splits_internal.h"

namespace vitrail::data {
namespace {

using namespace std::string_literals;
using Names = std::vector<std::string>;

TEST(OpenDataset, NamesThePathAndWhatItMayBe) {
  const fs::path root = testing::scratch_folder();
  EXPECT_EQ(error_of([&] { open_dataset(root / "gone", {}); }),
            (root / "gone").string() + ": expected a dataset, got nothing at this path");
  for (const char* name : {"a.gz", "a.tarx", "a.csvx", "csv", "a", "a.zip.old", "images-idx1", "idx3-images"}) {
    write_file(root / name, "x");
    EXPECT_EQ(error_of([&] { open_dataset(root / name, {}); }),
              (root / name).string() +
                  ": expected a folder, a .zip, a .tar, a .tar.gz, a .csv, CIFAR's .bin or MNIST's "
                  "idx3-ubyte[.gz] of images, got a file named otherwise");
  }
  // A file that has the name of a format is read as such, in any case.
  for (const auto& [name, part] : {std::pair{"a.ZIP", "a.ZIP"},
                                   {"a.Tar", "a tar archive"},
                                   {"a.TAR.GZ", "a tar archive"},
                                   {"a.tgz", "a tar archive"},
                                   {"a.TSV", "got none"},
                                   {"a.Csv", "got none"},
                                   {"a.BIN", "records"},
                                   {"images-idx3", "an IDX header"}}) {
    write_file(root / name, "");
    EXPECT_TRUE(contains(error_of([&, name = name] { open_dataset(root / name, {}); }), part)) << name;
  }
}

TEST(OpenDataset, TellsWhatTheLabelsAreInsteadOfWhatIsAskedFor) {
  const fs::path csv = testing::scratch_folder() / "l.csv";
  write_file(csv, "a.png,cat|dog\n");
  EXPECT_EQ(error_of([&] { open_dataset(csv, {.multi_label = false}); }),
            csv.string() + ": expected a dataset of one label per image, got several labels per image");
  EXPECT_TRUE(open_dataset(csv, {.multi_label = true})->is_multi_label());
  const fs::path folder = testing::scratch_folder();
  place_images(folder, {"a/1.png", "b/2.png"});
  EXPECT_EQ(error_of([&] { open_dataset(folder, {.multi_label = true}); }),
            folder.string() +
                ": expected a dataset of several labels per image (a CSV list with labels as \"cat|dog\"), "
                "got one label per image");
  EXPECT_FALSE(open_dataset(folder, {.multi_label = false})->is_multi_label());
}

TEST(OpenDataset, ASingleFileHasNoSplit) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "x.bin", "\x01" + std::string(3072, 'x'));
  EXPECT_EQ(error_of([&] { open_dataset(root / "x.bin", {.split = "test"}); }),
            (root / "x.bin").string() + ": expected a split test, got a dataset without splits");
  EXPECT_EQ(open_dataset(root / "x.bin", {.split = "."})->size(), 1);
  EXPECT_EQ(open_dataset(root / "x.bin", {})->split(), "");
}

TEST(Summary, NamesClassesByTheirIndexWithoutNames) {
  const fs::path csv = testing::scratch_folder() / "l.csv";
  write_file(csv, "file,class_index\na.png,3\nb.png,1\nc.png,3\n");
  EXPECT_EQ(summary(*open_dataset(csv, {.num_classes = 4}), "x"), "3 images of x, 2 classes: 1, 3");
  EXPECT_EQ(summary(*open_dataset(csv, {.labels = {"a", "b", "c", "d"}}), "x"), "3 images of x, 2 classes: b, d");
  write_file(csv, "file,label,split\na.png,3,test\n");
  EXPECT_EQ(summary(*open_dataset(csv, {}), "x/"), "1 image of x/test, 1 class: 3");
  EXPECT_EQ(summary(*open_dataset(csv, {}), "x"), "1 image of x/test, 1 class: 3");
}

// CIFAR ---------------------------------------------------------------------------------------------------------------

std::string record(char label, char value) { return std::string(1, label) + std::string(3072, value); }

TEST(Cifar, HasContentsAndNamesOfItsFolder) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "data_batch_1.bin", record(1, 'a') + record(2, 'b'));
  write_file(root / "data_batch_3.bin", record(3, 'a'));
  write_file(root / "test_batch.bin", record(4, 'c'));
  const auto train = open_dataset(root, {.split = "train"});
  ASSERT_EQ(train->size(), 3);
  EXPECT_EQ(train->split(), "train");
  EXPECT_EQ(train->path(2), (root / "data_batch_3.bin").string() + "#0");
  EXPECT_EQ(train->content_size(1), 3072);
  EXPECT_EQ(train->content_hash(0), train->content_hash(2));
  EXPECT_NE(train->content_hash(0), train->content_hash(1));
  EXPECT_EQ(train->image(1).height, 32);
  EXPECT_EQ(dataset_splits(root), (Names{"test", "train"}));
  EXPECT_EQ(train->class_names(), (Names{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));
  write_file(root / "batches.meta.txt", "a\nb\nc\n");
  EXPECT_EQ(open_dataset(root, {})->class_names().at(9), "9") << "another number of names";
  write_file(root / "batches.meta.txt", "\na\nb\nc\n\nd\ne\nf\ng\nh\ni\nj");
  EXPECT_EQ(open_dataset(root, {})->class_names().at(9), "j");
  EXPECT_EQ(open_dataset(root, {.labels = {"A", "B", "C", "D", "E"}})->class_names().at(4), "E") << "the model's";
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {.labels = {"A", "B"}}); }), "as its 2, got 10: 'a', 'b'"));
  fs::remove(root / "batches.meta.txt");
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {.labels = {"A", "B"}}); }), "a label below 2, got 4"));
  fs::remove(root / "test_batch.bin");
  EXPECT_EQ(dataset_splits(root), Names{"train"});
}

// The labels of a model may be in another order than CIFAR's.
TEST(Cifar, NamedClassesAreThoseOfTheModelByName) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "test_batch.bin", record(1, 'a') + record(9, 'b'));
  write_file(root / "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj");
  const Warnings warnings;
  const auto named = open_dataset(root, {.labels = {"J", "x", "b"}});
  EXPECT_EQ(named->label(0), 2);
  EXPECT_EQ(named->label(1), 0);
  EXPECT_EQ(named->class_names(), (Names{"J", "x", "b"}));
  EXPECT_TRUE(warnings.messages.empty());
  const Names others{"q", "r", "s", "t", "u", "v", "w", "x", "y", "z"};
  EXPECT_EQ(open_dataset(root, {.labels = others})->label(1), 9);
  EXPECT_EQ(warnings.messages,
            Names{root.string() + ": class indices are used, because no class name is a label of the model: 'a', 'b', "
                                  "'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'"});
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root, {.labels = {"b", "x"}}); }), "1 of 2 that are not: 'j'"));
}

TEST(Cifar, NamesUpToAMebibyteAreRead) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "test_batch.bin", record(1, 'a'));
  const std::string names = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
  write_file(root / "batches.meta.txt", names + std::string((1 << 20) - names.size(), '\n'));
  EXPECT_EQ(open_dataset(root, {})->class_names().at(9), "j");
  write_file(root / "batches.meta.txt", names + std::string((1 << 20) + 1 - names.size(), '\n'));
  EXPECT_EQ(error_of([&] { open_dataset(root, {}); }),
            (root / "batches.meta.txt").string() + ": expected at most 1048576 bytes, got 1048577");
}

TEST(Cifar, AFileOfAnotherNameIsKnownByItsRecords) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "ten.bin", record(9, 'a') + record(3, 'b'));
  EXPECT_EQ(open_dataset(root / "ten.bin", {})->label(0), 9);
  write_file(root / "hundred.bin", "\x05"s + record(99, 'a') + "\x06"s + record(3, 'b'));
  const auto hundred = open_dataset(root / "hundred.bin", {});
  EXPECT_EQ(hundred->label(0), 99);
  EXPECT_EQ(hundred->image(1).pixels[0], 'b');
  EXPECT_EQ(hundred->class_names().size(), 100u);
  write_file(root / "other.bin", std::string(3072, 'x'));
  EXPECT_EQ(error_of([&] { open_dataset(root / "other.bin", {}); }),
            (root / "other.bin").string() +
                ": expected complete records of CIFAR-10 (3073 bytes) or CIFAR-100 (3074 bytes), got 3072 bytes");
  write_file(root / "test.bin", record(1, 'x'));
  EXPECT_EQ(error_of([&] { open_dataset(root / "test.bin", {}); }),
            (root / "test.bin").string() + ": expected one or more records of 3074 bytes, got 3073 bytes");
}

TEST(Cifar, EachVariantIsAFolder) {
  for (const auto& [file, split] : {std::pair{"data_batch_5.bin", "train"},
                                    {"test_batch.bin", "test"},
                                    {"train.bin", "train"},
                                    {"test.bin", "test"}}) {
    const fs::path root = testing::scratch_folder();
    write_file(root / file, "not read");
    EXPECT_TRUE(has_cifar(*files_of(root))) << file;
    EXPECT_EQ(dataset_splits(root), Names{split}) << file;
  }
  for (const char* file : {"data_batch_6.bin", "train", "test", "data_batch_1", "test_batch", "other.bin"}) {
    const fs::path root = testing::scratch_folder();
    write_file(root / file, "no pickle");
    EXPECT_FALSE(has_cifar(*files_of(root))) << file;
    write_file(root / file, "\x80\x03."s);
    EXPECT_EQ(has_cifar(*files_of(root)), is_cifar_pickle(file)) << file;
  }
  for (const char* file : {"train", "test", "data_batch_1", "data_batch_5", "test_batch"})
    EXPECT_TRUE(is_cifar_pickle(file)) << file;
  for (const char* file : {"test.bin", "data_batch_0", "data_batch_6", "meta", "batches.meta", "x"})
    EXPECT_FALSE(is_cifar_pickle(file)) << file;
}

CifarFile file_of(const std::string& bytes) {
  const auto owner = std::make_shared<const std::string>(bytes);
  return {"x", std::as_bytes(std::span(*owner)), owner};
}

// Pickles of protocol 2 by hand: } is a dict, ( … u its entries, ] a list, ( … e its items, K a byte, U a short string.
TEST(Cifar, PickledLabelsAreAListOfSmallIntegers) {
  const CifarVariant variant{.is_pickle = true, .classes = 10, .labels_key = "labels"};
  const auto refusal = [&](const std::string& content) {
    return error_of([&] { read_cifar_pickle(file_of("\x80\x02" + content + "."), variant); });
  };
  const auto labels = [](const std::string& value) { return "}(U\x06labels" + value + "u"; };
  EXPECT_EQ(refusal("]"), "x: expected a CIFAR batch for Python: a dict with \"labels\", got none");
  EXPECT_EQ(refusal("}(U\x04"
                    "dataK\x01u"),
            "x: expected a CIFAR batch for Python: a dict with \"labels\", got none");
  EXPECT_TRUE(refusal(labels("K\x05")).starts_with("x: expected \"labels\": a list of labels, got "));
  EXPECT_TRUE(refusal(labels("]")).starts_with("x: expected \"labels\": a list of labels, got "));
  EXPECT_TRUE(refusal(labels("](K\x01U\x01"
                             "2e"))
                  .starts_with("x: expected integers as labels, got "));
  EXPECT_EQ(refusal(labels("](K\x01K\x0a"
                           "e")),
            "x#1: expected a label below 10, got 10");
  EXPECT_EQ(refusal(labels("](J\xff\xff\xff\xff"
                           "e")),
            "x#0: expected a label below 10, got -1");
  EXPECT_EQ(refusal(labels("](K\x01K\x09"
                           "e")),
            "x: expected a CIFAR batch for Python: a dict with \"data\", got none");
}

// An opaque object whose state is that of an array; c names a class, R calls it, b sets its state.
std::string pickled_array(const std::string& shape, const std::string& content) {
  return "cnumpy\nndarray\n)R(K\x01(" + shape + "tN\x89" + content + "tb";
}

std::string pickled_text(char code, const std::string& text) {
  std::string length;
  for (int i = 0; i < 4; ++i) length += static_cast<char>(text.size() >> (8 * i));
  return code + length + text;
}

// Python 3 has protocol 2's bytes as text, where those from 0x80 have two.
TEST(Cifar, PickledArraysMayBeOfPython3) {
  const CifarVariant variant{.is_pickle = true, .classes = 10, .labels_key = "labels"};
  const std::string encoded =
      "c_codecs\nencode\n(" + pickled_text('X', "\xC3\xBF\xC2\x80" + std::string(3070, 'a')) + "U\x06latin1tR";
  const std::string shape = "K\x01M\x00\x0c"s;
  const auto batch = [&](const std::string& labels, const std::string& content) {
    return read_cifar_pickle(
        file_of("\x80\x02}(U\x06labels" + labels + "U\x04" + "data" + pickled_array(shape, content) + "u."), variant);
  };
  const CifarBatch decoded = batch(
      "](K\x05"
      "e",
      encoded);
  EXPECT_EQ(decoded.labels, std::vector<int64_t>{5});
  EXPECT_EQ(decoded.pixels[0], std::byte{0xFF});
  EXPECT_EQ(decoded.pixels[1], std::byte{0x80});
  EXPECT_EQ(decoded.pixels[3071], std::byte{'a'});
  const std::string plain = pickled_text('T', std::string(3072, 'x'));
  for (const size_t size : {1, 2, 4, 8}) {
    const std::string seven = pickled_text('T', "\x07" + std::string(size - 1, '\0'));
    EXPECT_EQ(batch(pickled_array("K\x01", seven), plain).labels, std::vector<int64_t>{7}) << size;
  }
  for (const std::string& labels :
       {pickled_array("K\x01", pickled_text('T', "\1\0\0"s)), pickled_array("K\x01K\x01", pickled_text('T', "\1")),
        pickled_array("K\x02", pickled_text('T', "\1")), pickled_array("K\0"s, pickled_text('T', ""))})
    EXPECT_TRUE(contains(error_of([&] { batch(labels, plain); }), "x: expected \"labels\": a list of labels, got "));
  EXPECT_EQ(error_of([&] { batch(pickled_array("K\x01", pickled_text('T', "\x0b")), plain); }),
            "x#0: expected a label below 10, got 11");
  for (const std::string& text :
       {"\xC4\x80" + std::string(3071, 'a'), std::string(3072, 'a') + "\xC3", std::string(3073, 'a')}) {
    const std::string other = "c_codecs\nencode\n(" + pickled_text('X', text) + "U\x06latin1tR";
    EXPECT_TRUE(contains(error_of([&] {
                           batch(
                               "](K\x05"
                               "e",
                               other);
                         }),
                         "another shape, order or type"));
  }
}

TEST(Cifar, AFolderAroundItsFolderIsEntered) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "cifar-10-batches-bin/test_batch.bin", record(4, 'c'));
  write_file(root / "cifar-10-binary.tar.gz", "x");
  EXPECT_EQ(open_dataset(root, {})->label(0), 4);
  EXPECT_EQ(dataset_splits(root), Names{"test"});
  write_file(root / "cifar-100-binary/test.bin", "\x05"s + record(99, 'a'));
  EXPECT_EQ(
      error_of([&] { open_dataset(root, {}); }),
      root.string() + ": expected one dataset, got several, name one: 'cifar-10-batches-bin', 'cifar-100-binary'");
}

TEST(Cifar, PickledNamesAreAListOfStrings) {
  const auto names = [](const std::string& content) {
    return read_pickled_names(file_of("\x80\x02" + content + "."), "n");
  };
  EXPECT_EQ(names("}(U\x01n](U\x01"
                  "aU\x02"
                  "bceu"),
            (Names{"a", "bc"}));
  EXPECT_TRUE(names("}(U\x01m](U\x01"
                    "aeu")
                  .empty())
      << "another key";
  EXPECT_TRUE(names("}(U\x01nK\x01u").empty()) << "no list";
  EXPECT_TRUE(names("]").empty()) << "no dict";
  EXPECT_TRUE(error_of([&] {
                names(
                    "}(U\x01n](U\x01"
                    "aK\x02"
                    "eu");
              }).starts_with("x: expected strings as class names, got "));
}

// MNIST ---------------------------------------------------------------------------------------------------------------

std::string big_endian_bytes(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}
std::string idx_image_file(uint32_t n, uint32_t height, uint32_t width) {
  std::string bytes =
      big_endian_bytes(0x803) + big_endian_bytes(n) + big_endian_bytes(height) + big_endian_bytes(width);
  for (uint32_t i = 0; i < n * height * width; ++i)
    bytes += static_cast<char>(i / (height * width) * 100 + i % (height * width));
  return bytes;
}
std::string idx_label_file(const std::string& labels) {
  return big_endian_bytes(0x801) + big_endian_bytes(static_cast<uint32_t>(labels.size())) + labels;
}

TEST(Idx, ImagesAndLabelsAreCompressedOrNot) {
  for (const bool images_gz : {false, true}) {
    for (const bool labels_gz : {false, true}) {
      const fs::path root = testing::scratch_folder();
      const std::string images = idx_image_file(3, 2, 5), labels = idx_label_file("\x01\x05\x02");
      write_file(root / (images_gz ? "train-images-idx3-ubyte.gz" : "train-images-idx3-ubyte"),
                 images_gz ? gzipped(images) : images);
      write_file(root / (labels_gz ? "train-labels-idx1-ubyte.gz" : "train-labels-idx1-ubyte"),
                 labels_gz ? gzipped(labels) : labels);
      const auto dataset = open_dataset(root, {.split = "train", .decode = {.mode = image::ColorMode::grey}});
      ASSERT_EQ(dataset->size(), 3);
      EXPECT_EQ(dataset->split(), "train");
      EXPECT_EQ(dataset->label(1), 5);
      EXPECT_EQ(dataset->image(2).pixels.front(), 200);
      EXPECT_EQ(dataset->image(2).pixels.back(), 209);
      EXPECT_EQ(dataset->content_size(0), 10);
      EXPECT_NE(dataset->content_hash(0), dataset->content_hash(2));
      EXPECT_EQ(dataset->class_names().size(), 6u) << "up to the largest label";
      EXPECT_TRUE(dataset->path(1).ends_with("#1"));
      EXPECT_EQ(dataset_splits(root), Names{"train"});
    }
  }
}

// The splits of a training run are opened one after the other.
TEST(ArrayFiles, AreReadOnce) {
  const fs::path idx = testing::scratch_folder(), cifar = testing::scratch_folder();
  const fs::path images = idx / "train-images-idx3", batch = cifar / "test_batch.bin";
  write_file(images, idx_image_file(2, 3, 5));
  write_file(idx / "train-labels-idx1", idx_label_file("ab"));
  write_file(batch, record(1, 'x'));
  for (const fs::path& file : {images, batch}) {
    const auto manifest = read_manifest(file.parent_path());
    const DatasetOptions options{.default_splits = {"train", "test"}};
    manifest->open(options);
    const fs::path other = file.parent_path() / "other";
    write_file(other, "x");
    fs::rename(other, file);
    EXPECT_GT(manifest->open(options)->size(), 0) << file;
  }
}

TEST(Idx, RefusalsSayWhatIsWrong) {
  const fs::path root = testing::scratch_folder();
  const fs::path images = root / "images-idx3", labels = root / "labels-idx1";
  const auto refusal = [&](const std::string& image_bytes, const std::string& label_bytes,
                           const DatasetOptions& options = {}) {
    write_file(images, image_bytes);
    write_file(labels, label_bytes);
    return error_of([&] { open_dataset(images, options); });
  };
  const std::string good = idx_image_file(2, 3, 5), in_images = images.string() + ": expected ",
                    in_labels = labels.string() + ": expected ";
  EXPECT_EQ(refusal(good.substr(0, 15), ""), in_images + "an IDX header of 16 bytes, got 15 bytes");
  EXPECT_EQ(refusal(big_endian_bytes(0x802) + good.substr(4), ""),
            in_images + "IDX magic 2051 (bytes, 3 axes), got 2050");
  EXPECT_EQ(refusal(good + "x", ""), in_images + "30 bytes after the header, got 31");
  EXPECT_EQ(refusal(idx_image_file(2, 0, 5), ""), in_images + "at least one element, got none");
  EXPECT_EQ(refusal(good, "1234567"), in_labels + "an IDX header of 8 bytes, got 7 bytes");
  EXPECT_EQ(refusal(good, big_endian_bytes(0x803) + big_endian_bytes(1) + "x"),
            in_labels + "IDX magic 2049 (bytes, 1 axes), got 2051");
  EXPECT_EQ(refusal(good, idx_label_file("abc")), in_labels + "2 labels, one per image, got 3");
  EXPECT_EQ(refusal(good, idx_label_file("\x01\x05"), {.num_classes = 5}),
            labels.string() + "#1: expected a label below 5, got 5");
  write_file(labels, idx_label_file("\x01\x04"));
  EXPECT_EQ(open_dataset(images, {.num_classes = 5})->size(), 2);
  EXPECT_EQ(open_dataset(images, {.labels = {"a", "b", "c", "d", "e"}})->class_names().at(4), "e");
  EXPECT_EQ(error_of([&] { open_dataset(images, {.split = "test"}); }),
            images.string() + ": expected a split test, got a dataset without splits");
}

TEST(Idx, FilesAreKnownByTheirNames) {
  for (const char* name : {"images-idx3", "train-images.idx3-ubyte", "t10k-images-idx3-ubyte.gz", "x/my-images-idx3"})
    EXPECT_TRUE(is_idx_images(name)) << name;
  for (const char* name : {"idx3-images", "images", "idx3", "labels-idx1", "images-idx1", "image-idx3", "images/idx3"})
    EXPECT_FALSE(is_idx_images(name)) << name;
  const fs::path root = testing::scratch_folder();
  write_file(root / "images-idx3", "x");
  EXPECT_TRUE(dataset_splits(root).empty()) << "no word of a split";
  EXPECT_EQ(error_of([&] { open_dataset(root, {}); }),
            (root / "images-idx3").string() + ": expected an IDX header of 16 bytes, got 1 bytes");
  write_file(root / "a-test-images-idx3", "x");
  write_file(root / "b-train-images-idx3.gz", "x");
  EXPECT_EQ(dataset_splits(root), (Names{"test", "train"}));
  write_file(root / "test-and-train-images-idx3", "x");
  EXPECT_EQ(error_of([&] { open_dataset(root, {.split = "test"}); }),
            root.string() +
                ": expected one images file of the split test, got a-test-images-idx3 (test), "
                "b-train-images-idx3.gz (train), images-idx3 (), test-and-train-images-idx3 (test)");
}

// Lists ---------------------------------------------------------------------------------------------------------------

TEST(CsvDataset, MessagesSayWhatARowNeeds) {
  const fs::path csv = testing::scratch_folder() / "l.csv";
  const auto refusal = [&](const std::string& text, const DatasetOptions& options = {}) {
    write_file(csv, text);
    return error_of([&] { open_dataset(csv, options); });
  };
  const std::string path = csv.string();
  EXPECT_EQ(refusal("a.png,1\nb.png\n"), path + ":2: expected a file and a label, got 1 field");
  EXPECT_EQ(refusal("a.png,1\n ,2\n"), path + ":2: expected a file, got an empty field");
  EXPECT_EQ(refusal("a.png,cat\nb.png,\n"), path + ":2: expected a label, got an empty field");
  EXPECT_EQ(refusal("file,class_index\na.png,-3\n"), path + ":2: expected a class index of at least 0, got -3");
  EXPECT_EQ(refusal("file,class_index\na.png,3\n", {.num_classes = 3}),
            path + ":2: expected a class index below the model's 3 classes, got 3");
  EXPECT_EQ(refusal("a.png,wolf\n", {.labels = {"cat"}}),
            path + ": expected class indices, or class names of the model, got 'wolf'");
  EXPECT_EQ(refusal("file,label\n"), path + ": expected rows of a file and a label, got none");
  EXPECT_EQ(refusal("file,cat,dog\na.png,0,1\nb.png,1,x\n"), path + ":3: expected 0 or 1 for the class dog, got 'x'");
  EXPECT_EQ(refusal("file,cat,dog\na.png,0,1\nb.png,1\n"), path + ":3: expected a file and a label, got 2 fields");
  write_file(csv, "a.png,2\n");
  EXPECT_EQ(open_dataset(csv, {.num_classes = 3})->label(0), 2);
}

// Labels of several columns are those of the model, in its order.  The rows of an image are joined.
TEST(CsvDataset, SeveralLabelsAreSortedAndJoined) {
  const fs::path csv = testing::scratch_folder() / "l.csv";
  const Warnings warnings;
  write_file(csv, "file,zebra,cat,ant\na.png,1,1,0\na.png,0,0,1\nb.png,1,0,1\n");
  const auto own = open_dataset(csv, {});
  EXPECT_EQ(own->class_names(), (Names{"zebra", "cat", "ant"}));
  EXPECT_EQ(own->labels(0), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(own->labels(1), (std::vector<int64_t>{0, 2}));
  const auto model = open_dataset(csv, {.labels = {"ant", "x", "cat", "zebra"}});
  EXPECT_EQ(model->labels(0), (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(model->labels(1), (std::vector<int64_t>{0, 3}));
  write_file(csv, "a.png,dog|cat|dog\na.png,ant\n");
  EXPECT_EQ(open_dataset(csv, {})->labels(0), (std::vector<int64_t>{0, 1, 2}));
  write_file(csv, "file,class_index\na.png,5|3|5\n");
  EXPECT_EQ(open_dataset(csv, {.num_classes = 6})->labels(0), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(open_dataset(csv, {})->labels(0), (std::vector<int64_t>{0, 1})) << "names";
  EXPECT_EQ(error_of([&] { open_dataset(csv, {})->label(0); }),
            csv.parent_path().string() + "/a.png: expected one label per image, got a list of several labels");
  EXPECT_TRUE(warnings.messages.empty());
}

TEST(CsvDataset, AWarningTellsOfContradictingRows) {
  const fs::path csv = testing::scratch_folder() / "l.csv";
  const Warnings warnings;
  write_file(csv, "b.png,1\na.png,0\nb.png,2\nb.png,1\nc.png,0\n");
  open_dataset(csv, {});
  EXPECT_EQ(warnings.messages,
            Names{csv.string() +
                  ": 1 image is in rows of different classes, such as b.png; write several labels as \"cat|dog\""});
}

}  // namespace
}  // namespace vitrail::data
