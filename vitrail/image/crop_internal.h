// SPDX-License-Identifier: Apache-2.0
#pragma once
// Crop, padding and horizontal flip.
#include "vitrail/image/affine_internal.h"
#include "vitrail/image/image.h"
#include "vitrail/image/resize_internal.h"

namespace vitrail::image {

enum class Padding { constant, reflect };  // reflect: mirrored about the edge pixel, which is not repeated

// The window of the padded image; the window may extend beyond the image.  Throws Error if it is empty, and for reflect
// if it extends beyond an edge by the image's width or height or more.
Image crop(const Image& source, const Window& window, Padding padding = Padding::constant, const Fill& fill = {});

void mirror(Image& image);  // horizontal flip, Pillow's ImageOps.mirror

}  // namespace vitrail::image
