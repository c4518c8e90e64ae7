// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models that divide an image into segments with a class each: semantic and universal segmentation.
#include <optional>
#include <vector>

#include "vitrail/tasks/loaded_model.h"

namespace vitrail::tasks {

// semantic: a segment for each class; instance: a segment for each object, and pixels without one; panoptic: a segment
// for each object, and for each class of what has no objects (Kirillov et al. 2019, "Panoptic Segmentation").
enum class LabelMapTask : uint8_t { semantic, instance, panoptic };

struct LabelSegment {
  int32_t id = 0;                 // from 1, as in LabelMap::ids
  int64_t index = 0;              // index of its class
  std::optional<double> score{};  // none of a semantic model
};

struct LabelMap {
  int64_t width = 0, height = 0;
  std::vector<int32_t> ids{};            // [height, width]: the segment of each pixel; 0: none
  std::vector<LabelSegment> segments{};  // those that have pixels, by id
};

// What a model that finds objects keeps, as transformers' post_process functions.
struct LabelMapThresholds {
  double score = 0.8;    // instance, panoptic
  double overlap = 0.8;  // panoptic: the share of its mask that a segment must win from the others
};

class LabelMapModel : public LoadedModel {
 public:
  virtual std::vector<LabelMapTask> label_map_tasks() const = 0;  // that it can do; the first one by default
  // The height and width of the model's input, for maps of one size.
  virtual std::array<int64_t, 2> nominal_size() const = 0;
  // The map of what encode() gave, at a size.
  virtual LabelMap label_map(const ImageEncoding& encoding, LabelMapTask task, int64_t height, int64_t width,
                             const LabelMapThresholds& thresholds) const = 0;

  image::ColorMode color_mode() const override { return image::ColorMode::rgb; }
  std::unique_ptr<Request> tensors() const override;  // the classes of the pixels
  void warm_up() const override;
};

// The map whose segments are the classes: ids are class indices + 1.
LabelMap semantic_map(std::vector<int32_t> classes, int64_t height, int64_t width);

// The class of each pixel [height, width]; −1: none.
std::vector<int32_t> classes_of(const LabelMap& map);

const char* name_of(LabelMapTask task);

}  // namespace vitrail::tasks
