// SPDX-License-Identifier: Apache-2.0
#pragma once
// Outlines of objects in sets as masks, and how far masks overlap.
#include <string>

#include "vitrail/data/objects/object_set.h"
#include "vitrail/sam/rle.h"

namespace vitrail::sam {

// The union of its polygons, or its runs.  Throws Error naming `where` as polygon_mask() and from_coco(), and for runs
// that do not add up to the size.
Rle outline_mask(const data::ObjectOutline& outline, int64_t width, int64_t height, const std::string& where);

// A mask with what a comparison with many others needs.
class ComparedMask {
 public:
  explicit ComparedMask(Rle mask);
  int64_t area() const { return area_; }

  // Intersection over union; with a crowd, the intersection over the own area.  0 if a mask is empty.  Throws Error for
  // masks of different sizes.
  double overlap(const ComparedMask& truth, bool crowd) const;

 private:
  Rle mask_;
  PixelBox box_;
  int64_t area_;
};

}  // namespace vitrail::sam
