// SPDX-License-Identifier: Apache-2.0
#pragma once
// Binary masks of images, and what is measured on them.
#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::sam {

// pixels [height, width], each 0 or 1 (in the object).
struct BinaryMask {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels = {};

  const uint8_t* row(int64_t y) const { return pixels.data() + y * width; }
  uint8_t* row(int64_t y) { return pixels.data() + y * width; }
};

// All pixels 0.
BinaryMask make_mask(int64_t width, int64_t height);

// Columns x0 to x1 and rows y0 to y1.  Both ends belong to bounding boxes of masks; the second does not to crops.
struct PixelBox {
  int64_t x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  bool operator==(const PixelBox&) const = default;
};

// The pixels whose logit is above the threshold.  logits [height, width] f32; NaN counts as outside.  Throws Error for
// another shape or dtype.
BinaryMask threshold(const Tensor& logits, float threshold = 0);

int64_t area(const BinaryMask& mask);

// The smallest and largest column and row with a pixel of the mask; all 0 for an empty mask
// (segment_anything.utils.amg, batched_mask_to_box).
PixelBox bounding_box(const BinaryMask& mask);

// The number of logits above `offset`, divided by that above −offset: the intersection over union of both masks.  NaN
// if no logit is above −offset.  logits [height, width] f32.
float stability_score(const Tensor& logits, float offset);

// A mask of a crop in the frame of the image: `mask` with its upper left pixel at (x, y).  Throws Error if it does not
// fit.
BinaryMask uncrop(const BinaryMask& mask, int64_t x, int64_t y, int64_t width, int64_t height);

}  // namespace vitrail::sam
