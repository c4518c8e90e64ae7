// SPDX-License-Identifier: Apache-2.0
#pragma once
// Label maps: from scores of classes to a class of each pixel, and how well label maps agree.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

// The index of the largest of the scores [h, w, C] that bilinear interpolation (half-pixel centres, torch's
// align_corners=False) gives each pixel, [height, width]; the first of equal ones.  The interpolated scores are not
// stored.
std::vector<int32_t> argmax_at_size(const Tensor& scores, int64_t height, int64_t width);

// A part of a map, whose scores [h, w, C], contiguous and f32, are interpolated to the part's size.
struct ScoreWindow {
  Tensor scores;
  int64_t top = 0, left = 0, height = 0, width = 0;
};

// The same for a map {height, width} that windows cover: its scores are the means of those of the windows.  Source:
// MMSegmentation's slide_inference().
std::vector<int32_t> argmax_at_size(const std::vector<ScoreWindow>& windows, const std::array<int64_t, 2>& map,
                                    int64_t height, int64_t width);

constexpr int32_t kIgnoredLabel = 255;

// Counts pixels by their true and their predicted class.
class LabelMapMetrics {
 public:
  explicit LabelMapMetrics(int64_t classes);
  // Maps of equal size.  Pixels whose true label is `ignored` are left out; a predicted one outside the classes is
  // wrong.  Throws Error naming `where` for another true label outside the classes.
  void add(std::span<const int32_t> labels, std::span<const int32_t> predicted, const std::string& where,
           int32_t ignored = kIgnoredLabel);

  int64_t pixels() const;         // that were counted
  double pixel_accuracy() const;  // NaN without pixels
  // Intersection over union of a class; NaN for one that neither the labels nor the predictions have.
  double iou(int64_t label) const;
  double accuracy(int64_t label) const;  // share of the class's pixels that are found; NaN without any
  // The means over the classes that have a value.
  double mean_iou() const;
  double mean_accuracy() const;

 private:
  int64_t classes_;
  std::vector<int64_t> correct_, labelled_, predicted_;  // by class
};

}  // namespace vitrail::analysis
