// SPDX-License-Identifier: Apache-2.0
#pragma once
// How well segments with a category each agree with the true ones.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitrail::analysis {

struct PanopticSegment {
  int32_t id = 0;  // not 0
  int64_t category = 0;
  bool crowd = false;  // several objects that the annotation does not tell apart
};

// ids [height · width]: the segment of each pixel; 0: none, of the truth not annotated.
struct PanopticMap {
  std::span<const int32_t> ids;
  std::span<const PanopticSegment> segments;
};

// The panoptic quality (Kirillov et al. 2019, "Panoptic Segmentation", section 4), counted as COCO's panopticapi:
// a true and a predicted segment of one category match if their intersection over union is above ½.  Predicted pixels
// without annotation do not count in the union.  A predicted segment that is for more than half without annotation, or
// in a crowd of its category, is no false positive; a crowd is no false negative.
class PanopticQuality {
 public:
  explicit PanopticQuality(int64_t categories);
  // Throws Error naming `where` for maps of different sizes, a segment without pixels, pixels without their segment,
  // and a category out of range.
  void add(const PanopticMap& truth, const PanopticMap& predicted, const std::string& where);

  struct Score {
    double pq = 0, sq = 0, rq = 0;  // panoptic, segmentation and recognition quality, from 0 to 1
    int64_t categories = 0;         // that have a segment, over which the mean is
  };
  // NaN for a category that neither the truth nor the predictions have.
  Score of(int64_t category) const;
  Score mean(std::span<const int64_t> categories) const;

 private:
  struct Counts {
    double iou = 0;
    int64_t matched = 0, missed = 0, wrong = 0;
  };
  std::vector<Counts> counts_;
};

}  // namespace vitrail::analysis
