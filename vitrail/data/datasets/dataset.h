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
  // The split: its name in the set, or train, val or test, which stand for their synonyms too.  Empty: the first of
  // default_splits that exists, or all images if there are no splits.  ".": all images; the top folders are the
  // classes.
  std::string split{};
  std::vector<std::string> default_splits = {"test", "val"};
  std::vector<std::string> labels{};       // the model's class names in index order; may be empty
  std::vector<std::string> wordnet_ids{};  // their WordNet ids in the same order; may be empty
  int64_t num_classes = 0;                 // number of the model's classes; 0: that of labels, or unknown
  image::DecodeOptions decode{};           // colour mode and orientation of image()
  std::optional<bool> multi_label{};       // whether images must have several labels, or one; unset: as the data says
};

// One split of a labelled set (manifest.h), which is read for this alone.  Errors as there.
std::unique_ptr<Dataset> open_dataset(const std::filesystem::path& path, const DatasetOptions& options);

// What a dataset at `path` is, for messages: "20 images of photos/Training, 2 classes: cat, dog".  Counts the classes
// that have images, and lists the first ten.
std::string summary(const Dataset& dataset, const std::string& path);

}  // namespace vitrail::data
