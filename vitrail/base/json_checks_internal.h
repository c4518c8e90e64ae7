// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of JSON text before it is parsed, in linear time, and the words for what is wrong with it.  With a callback,
// nlohmann's parser visits the siblings after each object, so that its time grows with the square of their number.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace vitrail {

// The largest number of objects and arrays that are open at a time.  Text that is not JSON gives some number.
int json_depth(std::string_view text);

struct JsonContent {
  size_t values = 0;                             // objects, arrays and what they contain
  size_t bytes = 0;                              // what nlohmann's values of them take at most
  std::optional<std::string> repeated_key = {};  // the first key that one object has twice
};

// What ends the reading of JSON.
struct JsonBudget {
  size_t values = SIZE_MAX, bytes = SIZE_MAX;
  std::function<void()> check = {};  // called from time to time; may throw
};

// Reads up to the first fault: a repeated key, more than the budget, or text that is not JSON.
JsonContent json_content(std::string_view text, const JsonBudget& budget);

// What a parser that threw `error` got, for Error: the position and the reason, or "nothing" for white space alone.
std::string json_fault(std::string_view text, const std::exception& error);

}  // namespace vitrail
