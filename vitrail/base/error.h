// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one exception type of the library: what a user can get wrong, said for that user.
#include <sstream>
#include <stdexcept>
#include <string>

namespace vitrail {

// Joins its arguments as a stream prints them: str("rows ", 3) == "rows 3".
template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Thrown for bad input: a file, an option, a shape.  The message says where, what was expected and what came:
// "patch_embed: expected an image of 224×224, got 225×224".
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
  Error(const std::string& where, const std::string& expected, const std::string& got)
      : std::runtime_error(where + ": expected " + expected + ", got " + got) {}
};

}  // namespace vitrail
