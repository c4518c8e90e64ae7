// SPDX-License-Identifier: Apache-2.0
#pragma once
// Prompts of Segment Anything (Kirillov et al., 2023), in pixels of the image.
#include <optional>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::sam {

struct Point {
  double x = 0, y = 0;
  int label = 1;  // 1: in the object, 0: outside it
};

// The upper left and the lower right corner.
struct Box {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

// Any mixture of points, a box and a mask; at least one of them.
struct Prompt {
  std::vector<Point> points = {};
  std::optional<Box> box = {};
  Tensor mask_logits = {};  // [h, w] f32 at the resolution of the decoder's masks, as Masks::logits; undefined: none
  bool multimask = true;    // three masks of different extent, or one
};

}  // namespace vitrail::sam
