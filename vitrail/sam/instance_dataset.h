// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images with masks of the objects in them, for training and evaluation.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/sam/rle.h"

namespace vitrail::sam {

// What was left out when a dataset was opened.
struct InstancesLeftOut {
  int64_t images = 0;        // images without masks
  int64_t crowds = 0;        // COCO annotations of groups of objects
  int64_t without_mask = 0;  // COCO annotations without a segmentation
};

struct ClassMask {
  Rle mask;
  int64_t index = 0;  // names the class: that of class_names()
};

// Const functions are thread-safe.
class InstanceDataset {
 public:
  virtual ~InstanceDataset() = default;
  virtual int64_t size() const = 0;  // images, at least 1
  virtual std::filesystem::path path(int64_t image) const = 0;
  // The masks of an image of width × height pixels, each of that size and not empty.  Throws Error naming the file or
  // annotation for a mask of another size, for one that cannot be read, and for one with soft edges.
  virtual std::vector<Rle> masks(int64_t image, int64_t width, int64_t height) const = 0;

  // The names of the classes; empty if masks have none.  Those of COCO's JSON are its categories, in the order of their
  // ids.
  virtual std::vector<std::string> class_names() const { return {}; }
  // The same masks with their classes; none if they have none.  Throws Error as masks(), and for an annotation without
  // a category of the list.
  virtual std::vector<ClassMask> class_masks(int64_t /*image*/, int64_t /*width*/, int64_t /*height*/) const {
    return {};
  }

  const InstancesLeftOut& left_out() const { return left_out_; }

 protected:
  InstancesLeftOut left_out_;
};

// path: a JSON file in COCO's format (images, and annotations with polygons or runs), or a folder.  Images of a JSON
// file are beside it, in a folder `images` beside it, or, for ANNOTATIONS/instances_NAME.json, in ANNOTATIONS/../NAME.
// In a folder and its subfolders, the masks of IMAGE.jpg (or another format) are
// - IMAGE.png, in which each colour except black is an object, so that grey values or palette entries may number them;
// or
// - the PNG files in the folder IMAGE, each with one object in any colour except black.  Here the
//   image may be a PNG file too.
// A folder with a subfolder `split` is read as that subfolder.  Throws Error for a path that is neither, for JSON of
// another structure, and for no images with masks.
std::unique_ptr<const InstanceDataset> open_instances(const std::filesystem::path& path, const std::string& split = "");

// "1200 images of DATASET (left out: 3 images without masks, 5 crowd annotations)"
std::string summary(const InstanceDataset& dataset, const std::string& name);

}  // namespace vitrail::sam
