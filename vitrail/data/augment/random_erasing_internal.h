// SPDX-License-Identifier: Apache-2.0
#pragma once
// timm's RandomErasing (Zhong et al. 2017).
#include "vitrail/base/random.h"
#include "vitrail/data/augment/augment.h"

namespace vitrail::data {

// Erases randomly drawn rectangles of a normalised image [channels, height, width] in place.  A rectangle that does not
// fit in ten attempts is omitted.
void erase(const RandomErasing& options, int64_t channels, int64_t height, int64_t width, RandomStream& random,
           float* image);

}  // namespace vitrail::data
