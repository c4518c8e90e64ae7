// SPDX-License-Identifier: Apache-2.0
#pragma once
// The regular expressions of key maps.
#include <optional>
#include <regex>
#include <string>

namespace vitrail::weights {

// An ECMAScript regular expression that is matched against complete keys.  Back-references are not allowed, so that
// matching takes time linear in the key's length for every pattern.
class KeyPattern {
 public:
  // Throws Error naming `where` for an invalid or too complex expression.
  KeyPattern(const std::string& pattern, const std::string& where);

  // `replacement` with $1, $2, … substituted; none if the key does not match.
  std::optional<std::string> replace(const std::string& key, const std::string& replacement) const;

 private:
  std::string literal_;  // a substring of every matching key: a fast test before the expression
  std::regex expression_;
};

// The longest literal that every match of `pattern` contains; empty if none is obvious.
std::string required_literal(const std::string& pattern);

}  // namespace vitrail::weights
