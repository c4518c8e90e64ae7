// SPDX-License-Identifier: Apache-2.0
#pragma once
// The forms of sets of objects.
#include <memory>
#include <optional>

#include "vitrail/data/objects/object_set.h"

namespace vitrail::data {

class ObjectReader {
 public:
  virtual ~ObjectReader() = default;
  virtual std::vector<std::string> splits() const = 0;  // empty: none
  // A split, or the whole set: as the files have it.
  virtual ObjectSet read(const std::string& split, const ObjectSetOptions& options) const = 0;
};

using ObjectReaderPtr = std::unique_ptr<const ObjectReader>;

// Each opens a folder, or a file of its form; null: it is of another form.
ObjectReaderPtr coco_reader(const std::filesystem::path& path, bool keypoints);
ObjectReaderPtr yolo_reader(const std::filesystem::path& path);
ObjectReaderPtr voc_reader(const std::filesystem::path& path);
ObjectReaderPtr csv_object_reader(const std::filesystem::path& path);

// A file of annotations, and the split whose images it has.
struct SplitFile {
  std::string split;
  std::filesystem::path path;
};

// The files of a folder with this ending, ".json", sorted; none if it is no folder.
std::vector<std::filesystem::path> files_with_ending(const std::filesystem::path& folder, const std::string& ending);

// SUBFOLDER/name of each subfolder whose name is that of a split.
std::vector<SplitFile> files_of_split_folders(const std::filesystem::path& folder, const std::string& name);

// The names of files, unless there is one alone whose name is that of no split.
std::vector<std::string> splits_of_files(const std::vector<SplitFile>& files);

// For fuzzing too: a JSON text, without its images.
ObjectSet parse_coco_objects(const std::string& text, const std::string& where);

// The objects of a label file, in fractions of the image.  keypoint_shape {points, 2 or 3 values}; {}: none.
std::vector<LabelledObject> parse_yolo_labels(const std::string& text, const std::string& where, int64_t classes,
                                              const std::vector<int64_t>& keypoint_shape);

// An annotation of Pascal VOC; the classes are those of `names`, to which new ones are added.
struct VocImage {
  std::string file_name;
  std::vector<std::string> names;  // names of the objects
  LabelledImage image;
};
VocImage parse_voc(const std::string& text, const std::string& where);

}  // namespace vitrail::data
