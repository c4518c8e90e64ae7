// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/image/image.h"

namespace vitrail::anomaly {

// The image turned counter-clockwise about its centre, of the same size.  Bilinear; beyond its edges the image is
// mirrored, so that no border is new to a bank.
image::Image rotated(const image::Image& image, double degrees);

}  // namespace vitrail::anomaly
