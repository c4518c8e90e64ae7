// SPDX-License-Identifier: Apache-2.0
#pragma once
// The objects found in an image, whatever their classes are: those of a model or texts of a request.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/image/image.h"
#include "vitrail/sam/rle.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::tasks {

struct Detection {
  std::string label;
  int64_t index = 0;  // the class
  float score = 0;
  std::array<float, 4> box{};      // left, top, right, bottom in pixels of the image
  int64_t query = 0;               // that found it, of models with queries
  std::optional<sam::Rle> mask{};  // instance segmentation
  std::optional<int64_t> track{};  // the object's identity in a video
};

using Detections = std::vector<Detection>;  // the best one first

void sort_by_score(Detections& detections);

// The intersection of two boxes as a share of their union, or of the smaller box.
enum class Overlap : uint8_t { of_union, of_smaller };

// Non-maximum suppression: leaves out each object whose box overlaps that of a better one of its class by more than
// `threshold`.
void suppress(Detections& detections, double threshold, Overlap overlap = Overlap::of_union);

// {"path", "detections": [{"label", "index", "score", "box"}]} in one line, with "rle" for masks and "track" for
// identities
std::string detections_json(const std::string& path, const Detections& detections);

// [objects, 6]: box, score, index
Tensor detections_array(const Detections& detections);

// The image in RGB with the boxes and masks, in a colour for each class, and their labels and scores, which do not
// cover one another where the image has room for them.
image::Image detections_overlay(const image::Image& photo, const Detections& detections);

}  // namespace vitrail::tasks
