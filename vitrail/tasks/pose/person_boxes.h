// SPDX-License-Identifier: Apache-2.0
#pragma once
// Boxes of persons in COCO's JSON (cocodataset.org, "Data format" and "Results format").
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/image/image_view.h"

namespace vitrail::tasks {

struct PersonBox {
  std::array<double, 4> box{};  // left, top, width, height in pixels of the image, as COCO's "bbox"
  double score = 1;
  std::string label = "person";
  int64_t category = 1;  // its number where the box comes from; 1: COCO's of persons
};

// Whether a box has pixels of the image.
bool overlaps(const PersonBox& box, const image::ImageView& photo);

// The boxes of any number of images.
class PersonBoxes {
 public:
  // An object with "annotations" and perhaps "images" and "categories", or a list of results.  Of several categories,
  // the one of the name "person" counts alone if there is one.  Throws Error for text that is no such JSON, an
  // "image_id" that is not among the images, and a box that is not four numbers with a width and a height above 0.
  explicit PersonBoxes(std::string_view json);

  // The boxes of an image: those of the image with this file name, or, in a file without "images", those whose
  // "image_id" is the name without its extension ("000000000139" and 139), and those without "image_id".  Throws Error
  // if the file's images do not have the name.
  std::vector<PersonBox> of(const std::string& image) const;

 private:
  struct Entry {
    std::string image;  // its file or its id; empty: any
    PersonBox box;
  };

  std::vector<std::string> images_;  // their files; empty: the file names none
  std::vector<Entry> entries_;
};

}  // namespace vitrail::tasks
