// SPDX-License-Identifier: Apache-2.0
#pragma once
// Datasets of labelled images: class folders, zip archives, CSV lists, CIFAR and MNIST files.
#include <cstdint>
#include <filesystem>
#include <memory>
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
  virtual int64_t size() const = 0;                 // at least 1
  virtual std::string path(int64_t i) const = 0;    // as Sample::path; does not decode
  virtual int64_t label(int64_t i) const = 0;       // at least 0, and below num_classes if that is known
  virtual image::Image image(int64_t i) const = 0;  // throws Error naming path(i) if it cannot be decoded

  // Names in index order; empty if neither the dataset nor the model names the classes.
  const std::vector<std::string>& class_names() const { return class_names_; }

  Sample get(int64_t i) const { return {path(i), label(i), image(i)}; }

 protected:
  std::vector<std::string> class_names_;
};

// Every field has an initialiser, so that designated initialisers may omit any.
struct DatasetOptions {
  std::string split{};                     // empty: test, else val
  std::vector<std::string> labels{};       // the model's class names in index order; may be empty
  std::vector<std::string> wordnet_ids{};  // their WordNet ids in the same order; may be empty
  int64_t num_classes = 0;                 // number of the model's classes; 0: that of labels, or unknown
  image::DecodeOptions decode{};           // colour mode and orientation of image()
};

// Opens a dataset and detects its format:
//   a folder of class folders, optionally inside split folders, or a .zip of the same (read without unpacking);
//   a .csv with the columns file,class_index; file paths are relative to the CSV.  Further columns, quoted fields and a
//     header row are accepted; with a header the two columns may be anywhere;
//   CIFAR-10's and CIFAR-100's binary files (fine labels): a folder of them, or one .bin;
//   MNIST's IDX files, plain or .gz: a folder of them, or one images file with its labels file in the same folder.
// CIFAR and MNIST folders have the splits train and test.
//
// Throws Error if the format is unknown, the dataset is empty or damaged (naming the line of a CSV), the split does not
// exist, or a label is not a class of the model.
std::unique_ptr<Dataset> open_dataset(const std::filesystem::path& path, const DatasetOptions& options);

}  // namespace vitrail::data
