// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images for learning without labels.
#include <filesystem>
#include <memory>

#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {

// All images of
//   a folder, a .zip, a .tar, a .tar.gz or a .tgz, at any depth, whatever their folders are called;
//   a folder with tar archives and no images: webdataset shards;
//   a .txt with the path of an image on each line, relative to the folder of the list;
//   another labelled set (read_manifest): its split "train", or all images if it has no splits.
// The label of image i is i.  Other files and repeated lines are left out with a warning that counts them.  Throws
// Error if there is no image, if a subfolder cannot be read, and as read_manifest.
std::unique_ptr<Dataset> open_unlabelled(const std::filesystem::path& path, const image::DecodeOptions& decode = {});

// How many of `images` images to hold out: a tenth, at most 2,000.
int64_t unlabelled_holdout(int64_t images);

}  // namespace vitrail::data
