// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of JSON text before it is parsed, in linear time.  With a callback, nlohmann's parser visits the siblings
// after each object, so that its time grows with the square of their number.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace vitrail {

// The largest number of objects and arrays that are open at a time.  Text that is not JSON gives some number.
int json_depth(std::string_view text);

struct JsonContent {
  size_t values = 0;                             // objects, arrays and what they contain
  std::optional<std::string> repeated_key = {};  // the first key that one object has twice
};

// Reads up to the first fault: a repeated key, more than `max_values` values, or text that is not JSON.
JsonContent json_content(std::string_view text, size_t max_values);

}  // namespace vitrail
