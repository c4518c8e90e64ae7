// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images with segments that have a category each, in COCO's panoptic layout:
//   SET/annotations/panoptic_NAME.json   categories, and the segments of each image
//   SET/annotations/panoptic_NAME/*.png  the segment of each pixel: id = R + 256 G + 256² B, 0 without annotation
//   SET/NAME/*                           the images (NAME: val2017)
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace vitrail::data {

struct PanopticSet {
  struct Category {
    std::string name;
    bool thing = false;  // has objects; else it is stuff, and an image has one segment of it
  };
  struct Segment {
    int32_t id = 0;
    int64_t category = 0;  // an index of `categories`
    bool crowd = false;
  };
  struct Sample {
    std::string image, map;  // paths
    std::vector<Segment> segments;
  };
  std::string name;                  // NAME
  std::vector<Category> categories;  // in the order of their ids
  std::vector<Sample> samples;       // in the order of the images' paths
};

// Whether a folder has a file annotations/panoptic_*.json.
bool is_panoptic_set(const std::filesystem::path& folder);

// The annotations whose NAME begins with the first of `splits` that there is; a single file is taken whatever its name.
// Throws Error for none of the splits, and for a file that is malformed, naming the value.
PanopticSet open_panoptic_set(const std::filesystem::path& folder, const std::vector<std::string>& splits);

// The ids [height, width] of a map for an image of this size.  Throws Error for a file of another size.
std::vector<int32_t> read_panoptic_ids(const std::string& path, int64_t width, int64_t height);

}  // namespace vitrail::data
