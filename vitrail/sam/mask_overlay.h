// SPDX-License-Identifier: Apache-2.0
#pragma once
// Masks as colours over their image.
#include <span>

#include "vitrail/image/image.h"
#include "vitrail/sam/rle.h"

namespace vitrail::sam {

// Draws each mask in a colour of its own, with its outline in full; smaller masks are above larger ones.  opacity: the
// weight of the colours inside, from 0 to 1.  Returns RGB.  Throws Error for a mask of another size than the image.
image::Image mask_overlay(const image::Image& image, std::span<const Rle> masks, double opacity = 0.5);

}  // namespace vitrail::sam
