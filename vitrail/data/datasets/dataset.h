// SPDX-License-Identifier: Apache-2.0
#pragma once
// Datasets of labelled images: class folders, zip archives, CSV lists, CIFAR and MNIST files.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/image/decode.h"
#include "vitrail/image/image.h"

namespace vitrail::data {

struct Sample {
  std::string path;    // the file, or the position in a file: "cifar.zip/test/cat/0001.jpg", "test_batch.bin#17"
  int64_t label = -1;  // class index
  image::Image image;
};

// All functions are const and thread-safe.  Images are read on request.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;               // at least 1
  virtual std::string path(int64_t i) const = 0;  // as Sample::path; does not decode
  virtual int64_t label(int64_t i) const = 0;     // at least 0, and below num_classes if that is known
  // Whether an image may have several labels or none.  label() then throws Error, so that nothing takes one for all.
  virtual bool is_multi_label() const { return false; }
  virtual std::vector<int64_t> labels(int64_t i) const { return {label(i)}; }  // in ascending order
  virtual image::Image image(int64_t i) const = 0;  // throws Error naming path(i) if it cannot be decoded

  // The size in bytes of the encoded image, −1 if it is unknown, and a hash of the bytes.  Equal values tell that
  // images are identical.  content_hash throws Error naming path(i) if they cannot be read.
  virtual int64_t content_size(int64_t) const { return -1; }
  virtual uint64_t content_hash(int64_t) const { return 0; }

  // When the file that has the image was modified, in nanoseconds since a fixed time.  Empty if that is unknown, and
  // for datasets whose content_hash is cheap: CIFAR and MNIST.
  virtual std::optional<int64_t> modified_at(int64_t) const { return std::nullopt; }

  // Names in index order; empty if neither the dataset nor the model names the classes.
  const std::vector<std::string>& class_names() const { return class_names_; }

  // The folder or part of the dataset that was opened as its split: "Training", "test"; empty without splits.
  const std::string& split() const { return split_; }

  Sample get(int64_t i) const { return {path(i), label(i), image(i)}; }

 protected:
  std::vector<std::string> class_names_;
  std::string split_;
};

// Every field has an initialiser, so that designated initialisers may omit any.
struct DatasetOptions {
  // The split: a folder's name, or train, val or test, which stand for their synonyms too.  Empty: the first of
  // default_splits that exists, or all images if there are no splits.  ".": the top folders are the classes.
  std::string split{};
  std::vector<std::string> default_splits = {"test", "val"};
  std::vector<std::string> labels{};       // the model's class names in index order; may be empty
  std::vector<std::string> wordnet_ids{};  // their WordNet ids in the same order; may be empty
  int64_t num_classes = 0;                 // number of the model's classes; 0: that of labels, or unknown
  image::DecodeOptions decode{};           // colour mode and orientation of image()
  std::optional<bool> multi_label{};       // whether images must have several labels, or one; unset: as the data says
};

// Opens a dataset and detects its format:
//   a folder of class folders, optionally inside split folders, or a .zip, .tar, .tar.gz or .tgz of the same.  The
//     content of a compressed tar archive is held in memory, others are read without unpacking.  Splits are recognised
//     by their names in any case: train or training, val, valid, validation, dev or eval, test or testing, also with an
//     ending such as "_set";
//   a .csv or .tsv with the columns file,class_index or file,label; file paths are relative to it.  Further columns,
//     quoted fields and a header row are accepted; with a header the two columns may be anywhere.  Class names are
//     those of the model, or define the classes in natural order.  Semicolons, tabs and UTF-16 are recognised;
//     Images have several labels if class names or indices are separated by "|" ("cat|dog"; in a column "labels" or
//     "tags" also by semicolons or commas, or by blanks where the values leave no doubt), if they are lists as Python
//     writes them ("['cat', 'dog']"), or if there is a column of 0 and 1 for each class.  Rows of one file are joined;
//     Splits are in a column split, subset, partition, set, dataset or phase, in one whose values are all names of
//     splits, or in flags such as is_valid;
//   CIFAR-10's and CIFAR-100's binary files and those for Python (fine labels): a folder or a tar archive of them, or
//     one file;
//   MNIST's IDX files, plain or .gz: a folder of them, or one images file with its labels file in the same folder.
// CIFAR and MNIST folders have the splits train and test.
//
// What is left out (files of other kinds, folders without images) is a warning with its count.
//
// Throws Error if the format is unknown, the dataset is empty or damaged (naming the line of a CSV), the split does not
// exist, folders of splits and others are mixed, a label is not a class of the model, or
// options.multi_label differs from the data.
std::unique_ptr<Dataset> open_dataset(const std::filesystem::path& path, const DatasetOptions& options);

// The splits that a dataset has, of train, val and test; empty: none.  Warns of a split folder without images.  Throws
// Error if the dataset cannot be read.
std::vector<std::string> dataset_splits(const std::filesystem::path& path);

// What a dataset at `path` is, for messages: "20 images of photos/Training, 2 classes: cat, dog".  Counts the classes
// that have images, and lists the first ten.
std::string summary(const Dataset& dataset, const std::string& path);

}  // namespace vitrail::data
