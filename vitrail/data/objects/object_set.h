// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images with boxes around their objects, and masks and key points where the set has them.  A set is a folder, or the
// file that is named here first, in one of these forms:
//   COCO        annotations/instances_NAME.json with the images in NAME, images/NAME or images;
//   NAME/_annotations.coco.json
//               or FOLDER/annotations.json with the images beside it.  Splits are the NAMEs.
//   YOLO        data.yaml with class names and the folders of splits; the labels of images/x.jpg are in labels/x.txt,
//               with a line "class x y width height" in fractions of the image, or with the corners of a polygon, or,
//               if data.yaml has kpt_shape, key points behind the box
//   Pascal VOC  Annotations/x.xml with JPEGImages/x.jpg, and the splits in ImageSets/Main/NAME.txt; or x.xml beside
//               x.jpg, in a folder for each split
//   CSV         annotations.csv, NAME.csv or NAME/_annotations.csv: a header with an image, a label, and x1, y1, x2, y2
//               (or xmin, ymin, xmax, ymax), perhaps width, height and split; a row for each object, without
//               coordinates for an image without objects
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace vitrail::data {

struct KeyPoint {
  double x = 0, y = 0;
  int visibility = 0;  // 0: not labelled, 1: hidden, 2: visible
};

// The outline of an object: polygons, or runs as COCO encodes them.  Empty: the object has a box alone.
struct ObjectOutline {
  std::vector<std::vector<double>> polygons = {};  // x0, y0, x1, y1, … in pixels
  std::vector<uint32_t> runs = {};                 // lengths in column-major order: outside, inside, outside, …
  std::string coco_runs = {};                      // the same as pycocotools' text

  bool empty() const { return polygons.empty() && runs.empty() && coco_runs.empty(); }
};

struct LabelledObject {
  int64_t id = 0;               // COCO's annotation; elsewhere the object's number in its image
  int64_t index = 0;            // the class
  std::array<double, 4> box{};  // left, top, right, bottom in pixels
  double area = 0;              // COCO's, which is that of the mask; elsewhere that of the box
  bool crowd = false;           // COCO: several objects that the annotation does not tell apart
  bool difficult = false;       // VOC: evaluation does not count the object
  ObjectOutline outline = {};
  std::vector<KeyPoint> keypoints = {};
};

struct LabelledImage {
  std::string path;
  int64_t id = 0;                 // COCO's; elsewhere the number of the image in the set
  int64_t width = 0, height = 0;  // 0: the files do not say
  std::vector<LabelledObject> objects = {};
};

struct ObjectSet {
  std::string form{};                         // "COCO", "YOLO", "Pascal VOC", "CSV"
  std::string where{};                        // the file or folder, for messages
  std::string split{};                        // as the set names it; empty: it has none
  std::vector<std::string> class_names{};     // names in all splits
  std::vector<int64_t> category_ids{};        // COCO's id of each class; elsewhere the indices
  std::vector<std::string> keypoint_names{};  // those that the first category has
  std::vector<LabelledImage> images{};        // in the order of their paths; those without objects too
  bool in_fractions = false;                  // boxes, polygons and key points are fractions of the image
  bool cut = true;                            // as the option

  int64_t object_count() const;
};

struct ObjectSetOptions {
  // The splits are named as in DatasetOptions, also with a year: val2017.  A set without splits is taken whole.
  std::string split{};
  std::vector<std::string> default_splits = {"test", "val"};
  // Boxes are cut to their image, and objects without area are left out, with one warning that counts them.  Without
  // it they are as the files have them, as COCO's evaluation takes them.
  bool cut = true;
  bool keypoints = false;       // COCO: annotations/person_keypoints_NAME.json
  bool without_images = false;  // images need not be there; the paths are their names
};

// Whether the path is a folder or file of these forms, by the names of its files and the columns of CSV files.  Throws
// Error for a malformed data.yaml or CSV file.
bool is_object_set(const std::filesystem::path& path);

// Throws Error for a path of none or of several forms, with what was found; for a split that does not exist; naming the
// line or annotation for a malformed value, a class or an image that the set does not have; for missing images; and for
// a set without objects.
ObjectSet open_object_set(const std::filesystem::path& path, const ObjectSetOptions& options = {});

// The names of the splits; empty if the set has none.  Throws Error as open_object_set().
std::vector<std::string> object_set_splits(const std::filesystem::path& path);

// The objects of an image, in pixels.  Throws Error if the set has another size for it, and for a box outside.
std::vector<LabelledObject> objects_of(const ObjectSet& set, size_t image, int64_t width, int64_t height);

// "1200 images of SET/val (COCO): 3400 objects of 80 classes"
std::string summary(const ObjectSet& set, const std::string& name);

}  // namespace vitrail::data
