// SPDX-License-Identifier: Apache-2.0
#pragma once
// The exception type of the library, for errors that a user can cause.
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

namespace vitrail {

// Concatenates its arguments as an output stream prints them: str("rows ", 3) == "rows 3".
template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Thrown for invalid input: a file, an option, a shape.  The message names the place, the expected and the given value:
// "patch_embed: expected an image of 224×224, got 225×224".
class Error : public std::runtime_error {
 public:
  struct Parts {
    std::string where, expected, got;
  };

  explicit Error(const std::string& message) : std::runtime_error(message) {}
  Error(const std::string& where, const std::string& expected, const std::string& got)
      : std::runtime_error(where + ": expected " + expected + ", got " + got),
        parts_(std::make_shared<const Parts>(Parts{where, expected, got})) {}

  const Parts* parts() const { return parts_.get(); }  // null: the message is one sentence

 private:
  std::shared_ptr<const Parts> parts_;
};

}  // namespace vitrail
