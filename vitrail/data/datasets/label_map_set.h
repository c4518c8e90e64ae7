// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images with a class for each pixel, for semantic segmentation:
//   SET/images/*           images; also SET/img_dir
//   SET/labels/*           a PNG of class indices for each, of the same name; also SET/annotations, SET/ann_dir,
//   SET/masks
// Both may have a folder for each split: train, val, test (MMSegmentation), or training, validation (ADE20K's
// SceneParse150).
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace vitrail::data {

struct LabelMapSet {
  struct Sample {
    std::string image, labels;  // paths
  };
  std::vector<Sample> samples;  // sorted by the images' paths
  std::string split;            // empty: the set has none
};

// The first of `splits` that the set has; a set without splits is taken whole.  Throws Error for a folder of another
// layout, for none of the splits, and for an image without its labels.
LabelMapSet open_label_map_set(const std::filesystem::path& folder, const std::vector<std::string>& splits);

struct LabelMapReading {
  int32_t ignored = 255;       // the value of pixels without a class
  bool reduce_labels = false;  // 0 stands for no class, and class i for i − 1, as in ADE20K's files
};

// The labels [height, width] of an image of this size.  Throws Error for a file of another size and as
// image::read_labels().
std::vector<int32_t> read_label_map(const std::string& path, int64_t width, int64_t height,
                                    const LabelMapReading& reading);

}  // namespace vitrail::data
