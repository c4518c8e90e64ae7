// SPDX-License-Identifier: Apache-2.0
#pragma once
// Prompts of Segment Anything (Kirillov et al., 2023), in pixels of the image.
#include <optional>
#include <string>
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

// Clips a box that spills over the border of an image of width × height pixels by less than a pixel, as those of
// detectors do, with a warning that begins with `where`.
void clip_box(Prompt& prompt, int64_t width, int64_t height, const std::string& where);

// Throws Error naming `where` for a prompt without points, box and mask; for labels other than 0 and 1; for coordinates
// that are not finite or outside [0, width] × [0, height]; for a box without area; and for a mask that is not
// [mask_size, mask_size], has a NaN or infinity, or is binary: logits are negative outside the object.
void check_prompt(const Prompt& prompt, int64_t width, int64_t height, int64_t mask_size, const std::string& where);

}  // namespace vitrail::sam
