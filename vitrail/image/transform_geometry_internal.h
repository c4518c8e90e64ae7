// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes and offsets of the evaluation transforms.
#include <vector>

#include "vitrail/image/transform.h"

namespace vitrail::image {

// Resize to resized_width × resized_height, then crop the rectangle of width × height at (left, top).  Where the
// rectangle extends beyond the resized image it is padded with padding_of().
struct ResizeAndCrop {
  int64_t resized_width = 0, resized_height = 0;
  int64_t left = 0, top = 0, width = 0, height = 0;
};

ResizeAndCrop resize_and_crop_of(const EvalTransform& transform, int64_t width, int64_t height);

std::vector<uint8_t> padding_of(const EvalTransform& transform, int64_t channels);  // one value per channel

}  // namespace vitrail::image
