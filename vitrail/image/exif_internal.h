// SPDX-License-Identifier: Apache-2.0
#pragma once
// The EXIF orientation of image files.
#include "vitrail/image/codecs_internal.h"

namespace vitrail::image {

// The orientation of the EXIF standard, 1 to 8; 1 if the file has no readable one.  As Pillow's getexif(): from the
// EXIF block of a JPEG, PNG or WebP file, otherwise from its XMP packet (uncompressed).
int exif_orientation(Bytes file);

// Rotates and mirrors the image to its upright orientation: Pillow's ImageOps.exif_transpose.
Image exif_transpose(Image image, int orientation);

}  // namespace vitrail::image
