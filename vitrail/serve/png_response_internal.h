// SPDX-License-Identifier: Apache-2.0
#pragma once
// Responses that are images.
#include <cstdint>
#include <vector>

#include "vitrail/serve/call_internal.h"

namespace vitrail::serve {

HttpResponse png_response(const std::vector<uint8_t>& file);

// Whether a request asks for a PNG: by the option `format`, without it by the header Accept.  Throws Error for a PNG of
// several images.
bool wants_png(Call& call, bool single);

}  // namespace vitrail::serve
