// SPDX-License-Identifier: Apache-2.0
#pragma once
// The regular expressions of key maps.
#include <optional>
#include <regex>
#include <string>

namespace vitrail::weights {

// An ECMAScript regular expression that is matched against whole keys.  Without back-references: so matching takes time
// linear in the key, and no pattern can make it run for ever.
class KeyPattern {
 public:
  // Throws Error naming `where`.
  KeyPattern(const std::string& pattern, const std::string& where);

  // `replacement` with $1, $2, … filled in, or nothing when the key does not match.
  std::optional<std::string> replace(const std::string& key, const std::string& replacement) const;

 private:
  std::string literal_;  // every key that matches contains it
  std::regex expression_;
};

// The longest run of plain characters that every match of `pattern` contains; empty where that is not obvious.
std::string required_literal(const std::string& pattern);

}  // namespace vitrail::weights
