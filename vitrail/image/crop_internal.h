// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cutting out, padding and mirroring: pixels are moved, never changed.
#include "vitrail/image/affine_internal.h"
#include "vitrail/image/image.h"
#include "vitrail/image/resize_internal.h"

namespace vitrail::image {

enum class Padding { constant, reflect };  // reflect: mirrored at the outermost pixel, which is not repeated

// The window of the picture as if it went on beyond its edges.  Throws Error when the window is empty, and for reflect
// when it reaches further beyond an edge than the picture is wide or high less one.
Image crop(const Image& source, const Window& window, Padding padding = Padding::constant, const Fill& fill = {});

void mirror(Image& image);  // left becomes right

}  // namespace vitrail::image
