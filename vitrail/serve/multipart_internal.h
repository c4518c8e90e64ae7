// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bodies of several parts: multipart/form-data (RFC 7578).
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::serve {

struct Part {
  std::string name, filename;  // filename empty: a field of text
  std::string_view content;    // into the body
};

// content_type: that of the body, with its boundary.  Throws Error for a body that is not as RFC 7578, and for more
// than `max_parts` parts.
std::vector<Part> parse_multipart(std::string_view body, std::string_view content_type, size_t max_parts);

}  // namespace vitrail::serve
