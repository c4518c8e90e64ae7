// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chunks of a RIFF file, the container of WebP.
#include <optional>
#include <string_view>

#include "vitrail/image/codecs_internal.h"

namespace vitrail::image {

// The contents of the first top-level chunk with this four-character name; none if it is absent or truncated.
std::optional<Bytes> find_riff_chunk(Bytes file, std::string_view name);

}  // namespace vitrail::image
