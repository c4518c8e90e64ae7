// SPDX-License-Identifier: Apache-2.0
#pragma once
// Labelled sets: which images, labels and splits there are, read once, whatever is asked of them afterwards.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {

struct Rows;

// Immutable and thread-safe.  Datasets that it opens keep what they need of it.
class Manifest {
 public:
  virtual ~Manifest() = default;

  // Those of train, val and test that the set has, sorted.  Warns of a split folder without images.
  virtual std::vector<std::string> splits() const = 0;

  // The images of one split with their classes.  What is left out (files of other kinds, folders without images) is a
  // warning with its count.  Throws Error if the split does not exist, a row or file of it is damaged, a label is not a
  // class of the model, or options.multi_label differs from the set.
  std::unique_ptr<Dataset> open(const DatasetOptions& options) const;

 private:
  friend class MetadataManifest;
  virtual Rows rows(const DatasetOptions& options) const = 0;
};

// The columns of a list, where their names do not tell them: a name of the header, or a number from 1.
struct Columns {
  std::string file{}, label{};
  std::string split{};      // ".": none
  std::string separator{};  // between several labels of an image: one character
  std::string caption{};    // that of pairs of an image and a text (pair_set.h)
  bool operator==(const Columns&) const = default;
  bool operator<(const Columns& other) const {
    return std::tie(file, label, split, separator, caption) <
           std::tie(other.file, other.label, other.split, other.separator, other.caption);
  }
};

// Columns from "file=photo,label=species,split=use,separator=blank", or "caption=text"; any may be absent.  Separators
// are one character, or "blank", "comma" or "semicolon".  Throws Error for other keys.
Columns parse_columns(const std::string& text);

struct ManifestOptions {
  Columns columns{};                // those of a list
  int64_t max_entries = INT64_MAX;  // files and folders of a folder
};

// Reads a labelled set:
//   a folder of class folders, or a .zip, .tar, .tar.gz or .tgz of the same.  The content of a compressed tar archive
//     is held in memory, others are read without unpacking;
//   a .csv or .tsv with a row for each image, or a .jsonl with an object for each; file paths are relative to it.
//     Separators are commas, semicolons or tabs; UTF-16 is recognised;
//   Hugging Face's imagefolder: such a list called metadata.csv or metadata.jsonl, with columns file_name and label or
//     the like, in the folder or in that of each split;
//   CIFAR-10's and CIFAR-100's binary files and those for Python (fine labels): a folder or a tar archive of them, or
//     one file;
//   MNIST's IDX files, plain or .gz: a folder of them, or one images file with its labels file in the same folder.
//
// Three rules say what the labels and splits are.
//   Labels.  A folder is called like its class; a single folder around the others is entered.  A list has the column
//     file, filename, file_name, fname, filepath, filepaths, file_path, path, image, image_path, image_name or
//     image_id, and one of classes: label, class, class_name, target or category; labels, tags, classes, class_names or
//     categories, where ";" and "," separate several; class_index or class_id, which does not count beside the others;
//     or else a column of 0 and 1 for each class.  Numbers are names.  In class_index they are indices of the model's
//     classes unless all are its names, and without a model if they are all from 0 to the largest.  "|" separates
//     labels in every column, and so do the commas of a list such as "['cat', 'dog']".  Without a header, the first
//     column is the file, the second the label.
//   Splits.  Folders above the class folders, or a column split, subset, partition, set, dataset or phase of a list,
//     that have the names of splits in any case: train or training, val, valid, validation, dev or eval, test or
//     testing, also with an ending such as "_set"; or a column of 0 and 1 such as is_valid.  CIFAR and MNIST have train
//     and test.
//   All else is an Error that shows what was found and the option that says it.
// Also throws Error if the format is unknown, the set is empty or damaged (naming the line of a list), or the options
// name columns of a set that is no list.
std::shared_ptr<const Manifest> read_manifest(const std::filesystem::path& path, const ManifestOptions& options = {});

// The manifests that a command has read.  Copies share them.  Thread-safe: the processes of a run may be threads with
// copies of one recipe.
class Manifests {
 public:
  Manifests();
  // Reads a set unless it was read before with the same columns.  Throws Error as read_manifest.
  std::shared_ptr<const Manifest> get(const std::filesystem::path& path, const ManifestOptions& options = {});
  // Forgets the sets in all copies, so that the next get() sees files that have changed.
  void clear() const;

 private:
  struct Read;
  std::shared_ptr<Read> read_;
};

}  // namespace vitrail::data
