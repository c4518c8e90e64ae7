// SPDX-License-Identifier: Apache-2.0
#pragma once
// Resizing of 8-bit images to floats, as torchvision's resize of float tensors.
#include <vector>

#include "vitrail/image/filter.h"
#include "vitrail/image/image_view.h"

namespace vitrail::image {

// Resamples to values [height, width, channels] from 0 to 255, with the weights of resize(), but rounds neither pass to
// bytes.  Without antialias the filter is bilinear, and a value is that of two samples along each axis.  The source has
// 1 or 3 channels, whose order is kept.  Throws Error if a size is not positive.
std::vector<float> resize_floats(const ImageView& source, int64_t width, int64_t height, Filter filter,
                                 bool antialias = true);

}  // namespace vitrail::image
