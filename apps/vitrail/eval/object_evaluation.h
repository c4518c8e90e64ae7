// SPDX-License-Identifier: Apache-2.0
#pragma once
// The results of `vitrail eval` on sets of objects: COCO's metrics of boxes, masks and key points.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/analysis/coco_metrics.h"
#include "vitrail/analysis/detection_confusion.h"
#include "vitrail/data/objects/object_set.h"
#include "vitrail/sam/rle.h"

namespace vitrail::app {

// What was found in an image, by a model or in a file of results.
struct FoundObject {
  int64_t category = 0;  // an index of the set's classes
  double score = 0;
  std::array<double, 4> box{};  // left, top, right, bottom
  std::optional<sam::Rle> mask = {};
  std::vector<double> keypoints = {};  // x, y and any value of each
};

// What is compared.
struct ObjectKinds {
  bool boxes = false, masks = false, keypoints = false;
};

class ObjectEvaluation {
 public:
  // The set must outlive the object.
  ObjectEvaluation(const data::ObjectSet& set, ObjectKinds kinds);

  // The objects found in an image of this size.  Throws Error as objects_of(), and for a truth without what is
  // compared.
  void add(size_t image, int64_t width, int64_t height, const std::vector<FoundObject>& found);

  nlohmann::ordered_json json() const;
  void print() const;
  // A page with curves, confusion and the worst images, which are read again.  boxes must be compared.
  void write_report(const std::string& file, const std::string& subtitle, const std::string& command_line) const;

  int64_t images() const { return images_; }

 private:
  // The metrics of one kind.
  struct Kind {
    const char* name;
    analysis::CocoMetrics metrics;
  };
  struct WorstImage {
    size_t image = 0;
    analysis::DetectionConfusion::Errors errors{};
    std::vector<FoundObject> found{};
    std::vector<data::LabelledObject> truth{};
  };

  void add_boxes(size_t image, const std::vector<data::LabelledObject>& truth, const std::vector<FoundObject>& found);
  void add_masks(size_t image, int64_t width, int64_t height, const std::vector<data::LabelledObject>& truth,
                 const std::vector<FoundObject>& found);
  void add_keypoints(size_t image, const std::vector<data::LabelledObject>& truth,
                     const std::vector<FoundObject>& found);
  Kind& kind(const char* name);
  void keep_if_worst(WorstImage image);
  std::string name_of(size_t category) const;  // also of the last row of the confusion

  const data::ObjectSet& set_;
  ObjectKinds kinds_;
  std::vector<Kind> metrics_;
  analysis::DetectionConfusion confusion_;
  std::vector<WorstImage> worst_;  // the worst first
  std::vector<double> sigmas_;     // spread of each key point
  int64_t images_ = 0, objects_ = 0;
};

}  // namespace vitrail::app
