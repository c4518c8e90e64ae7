// SPDX-License-Identifier: Apache-2.0
#pragma once
// Range checks of augmentation options.
#include "vitrail/data/augment/augment.h"

namespace vitrail::data {

// Throws Error naming the option that is out of its range.
void check(const AugmentOptions& options, const image::EvalTransform& transform);

}  // namespace vitrail::data
