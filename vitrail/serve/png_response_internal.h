// SPDX-License-Identifier: Apache-2.0
#pragma once
// Responses that are images or other files.
#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/serve/call_internal.h"

namespace vitrail::serve {

HttpResponse png_response(const std::vector<uint8_t>& file);

// A file that a result may be: "png", "ply".
struct ResultFile {
  std::string name;
  bool joint = false;  // images may share it
};

// What a request asks for: "json", or one of `files`: by the option `format`, without it a PNG by the header Accept.
// Throws Error for a file of one image that several are to have.
std::string result_format(Call& call, bool single, const std::vector<ResultFile>& files);

}  // namespace vitrail::serve
