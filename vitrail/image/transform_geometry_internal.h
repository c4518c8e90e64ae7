// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes and offsets of the evaluation transforms; inside vitrail/image only.
#include <vector>

#include "vitrail/image/transform.h"

namespace vitrail::image {

// The source is resized to resized_width × resized_height; of that the rectangle at (left, top) of width × height is
// kept.  Where it sticks out (negative offsets, or sizes past the edge), it is filled with fill_of().
struct Frame {
  int64_t resized_width = 0, resized_height = 0;
  int64_t left = 0, top = 0, width = 0, height = 0;
};

Frame frame_of(const EvalTransform& transform, int64_t width, int64_t height);

std::vector<uint8_t> fill_of(const EvalTransform& transform, int64_t channels);  // one value per channel

}  // namespace vitrail::image
