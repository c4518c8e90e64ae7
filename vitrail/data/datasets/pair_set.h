// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pairs of images and texts, for contrastive learning.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/datasets/dataset.h"
#include "vitrail/data/datasets/manifest.h"

namespace vitrail::data {

struct PairSet {
  std::shared_ptr<const Dataset> images{};           // the label of image i is i
  std::vector<std::vector<std::string>> captions{};  // each image's, at least one, in the order of the set
};

struct PairSetOptions {
  Columns columns{};              // those of a list, where their names do not tell them
  std::string split{};            // train, val or test: the rows of a list with a column of splits; empty: all
  image::DecodeOptions decode{};  // colour mode and orientation of the images
};

// Reads pairs:
//   a .csv, .tsv or .jsonl with a row for each caption; file paths are relative to it.  The columns are those of
//   labelled
//     lists (manifest.h), and caption, captions, title, text, description or sentence.  Without a header, the first
//     column is the file, the second the caption;
//   a .tar, .tar.gz or .tgz, or a folder of .tar shards (webdataset), with KEY.txt beside each image KEY.jpg;
//   a folder of images with such files beside them.
// Rows of one file are captions of one image; a repeated caption of an image counts once.  Throws Error, naming file
// and line, for a row or an image without a caption, for text that is not UTF-8, for columns that neither names nor
// options tell, for an unknown split, and for a set without pairs.
PairSet open_pair_set(const std::filesystem::path& path, const PairSetOptions& options = {});

// Whether there are pairs at the path, by the header of a list, or by a text beside the first image of an archive or a
// folder.
bool is_pair_set(const std::filesystem::path& path);

// Those of train, val and test that a column of splits has, sorted; none for other sets.
std::vector<std::string> pair_set_splits(const std::filesystem::path& path, const Columns& columns = {});

}  // namespace vitrail::data
