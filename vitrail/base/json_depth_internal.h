// SPDX-License-Identifier: Apache-2.0
#pragma once
// The nesting of JSON text, before it is parsed.
#include <string_view>

namespace vitrail {

// The largest number of objects and arrays that are open at a time.  Text that is not JSON gives some number.
inline int json_depth(std::string_view text) {
  int depth = 0, largest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[')) {
      largest = largest < ++depth ? depth : largest;
    } else if (!in_string && (c == '}' || c == ']')) {
      --depth;
    }
  }
  return largest;
}

}  // namespace vitrail
