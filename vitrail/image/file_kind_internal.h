// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names the kind of files that are no images, or images that are not read.
#include <string>

#include "vitrail/image/codecs_internal.h"

namespace vitrail::image {

// "HEIC, which is not read: convert it to JPEG", "an HTML page", "an unknown format".
std::string describe_file(Bytes bytes);

}  // namespace vitrail::image
