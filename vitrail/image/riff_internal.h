// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chunks of a RIFF file (WebP's container); inside vitrail/image only.
#include <optional>
#include <string_view>

#include "vitrail/image/codecs_internal.h"

namespace vitrail::image {

// The contents of the first chunk of this four-letter name on the top level, or nothing.  A chunk that is cut off by
// the end of the file does not count.
std::optional<Bytes> find_riff_chunk(Bytes file, std::string_view name);

}  // namespace vitrail::image
