// SPDX-License-Identifier: Apache-2.0
#pragma once
// The orientation that a camera noted beside the pixels; inside vitrail/image only.
#include "vitrail/image/codecs_internal.h"

namespace vitrail::image {

// 1 to 8 as the EXIF standard numbers them; 1 where nothing readable says otherwise.  Looks where Pillow's getexif()
// does: the EXIF block of a JPEG, PNG or WebP file, and without an orientation there, the XMP packet (uncompressed).
int exif_orientation(Bytes file);

// The picture turned and mirrored so that it stands exif_transpose: Pillow's ImageOps.exif_transpose.
Image exif_transpose(Image image, int orientation);

}  // namespace vitrail::image
