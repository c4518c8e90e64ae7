// SPDX-License-Identifier: Apache-2.0
#pragma once
// Labelled images: a test set, whatever form it comes in.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/image/decode.h"
#include "vitrail/image/image.h"

namespace vitrail::data {

struct Sample {
  std::string path;    // the file, or where in a file: "cifar.zip/test/cat/0001.jpg", "test_batch.bin#17"
  int64_t label = -1;  // class index
  image::Image image;
};

// All of it is const and may be called from several threads at once.  Images are read when asked for.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;                 // at least 1
  virtual std::string path(int64_t i) const = 0;    // as Sample::path, without decoding
  virtual int64_t label(int64_t i) const = 0;       // at least 0, below num_classes where that is known
  virtual image::Image image(int64_t i) const = 0;  // throws Error naming path(i) when it cannot be decoded

  // By label; empty where neither the dataset nor the model names the classes.
  const std::vector<std::string>& class_names() const { return class_names_; }

  Sample get(int64_t i) const { return {path(i), label(i), image(i)}; }

 protected:
  std::vector<std::string> class_names_;
};

// Every field has an initialiser, so that designated ones may leave any out.
struct DatasetOptions {
  std::string split{};                     // empty: test, else val
  std::vector<std::string> labels{};       // the model's class names in index order; may be empty
  std::vector<std::string> wordnet_ids{};  // their WordNet ids in the same order; may be empty
  int64_t num_classes = 0;                 // of the model; 0: as many as there are labels, or not known
  image::DecodeOptions decode{};           // colour mode and orientation of what image() gives
};

// Opens a dataset by its form:
//   a folder of class folders, under split folders or not (class_folders_internal.h), or the same in a .zip, read in
//   place; a .csv of file,class_index: files relative to the CSV; further columns, a header row (whose names file and
//     class_index may then stand in any column) and quoted fields are understood;
//   CIFAR-10's and CIFAR-100's binary files (fine labels): a folder of them or one .bin;
//   MNIST's IDX files, plain or .gz: a folder of them, or one images file with its labels file beside it.
// In CIFAR's and MNIST's folders the splits are train and test.
//
// Throws Error when the path is none of these, is empty or damaged (a CSV's row is named by its line), when the split
// does not exist, and when a label is not a class of the model.
std::unique_ptr<Dataset> open_dataset(const std::filesystem::path& path, const DatasetOptions& options);

}  // namespace vitrail::data
