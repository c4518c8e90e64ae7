// SPDX-License-Identifier: Apache-2.0
#pragma once
// Responses that are images or other files.
#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/serve/call_internal.h"

namespace vitrail::serve {

HttpResponse png_response(const std::vector<uint8_t>& file);

// What a request asks for: "json", or one of `files` ("png", "ply"): by the option `format`, without it a PNG by the
// header Accept.  Throws Error for a file of several images.
std::string result_format(Call& call, bool single, const std::vector<std::string>& files);

}  // namespace vitrail::serve
