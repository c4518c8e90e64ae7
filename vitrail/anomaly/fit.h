// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the patch features of good images to a bank.
#include <vector>

#include "vitrail/anomaly/patches.h"

namespace vitrail::anomaly {

// Sets the bank's patches, thresholds and number of images; its other fields are the caller's.  images: the
// patches_of() each good image, at least one, at every angle, the original first.  The thresholds are those
// of every fifth image, held out of a bank of the others; with fewer than kMinHeldOut images there are none.  Throws
// Error for no image, a number of them that is no multiple of the rotations, and features of different widths.
constexpr size_t kMinHeldOut = 5;
void fit(const std::vector<Patches>& images, Bank& bank);

}  // namespace vitrail::anomaly
