// SPDX-License-Identifier: Apache-2.0
#pragma once
// The regular expressions of key maps.
#include <cstddef>
#include <optional>
#include <regex>
#include <string>

namespace vitrail::weights {

// An ECMAScript regular expression that is matched against complete keys.  The time of a match is proportional to
// size() · (length of the key): back-references and look-ahead are not allowed, and patterns, keys, groups and counts
// are limited.
class KeyPattern {
 public:
  // Throws Error naming `where` for an invalid or too complex expression.
  KeyPattern(const std::string& pattern, const std::string& where);

  // The length of the expression with its counts written out, at most 10,240.
  size_t size() const { return size_; }

  // `replacement` with $1, $2, … substituted; none if the key does not match.
  std::optional<std::string> replace(const std::string& key, const std::string& replacement) const;

 private:
  std::string literal_;  // a substring of every matching key: a fast test before the expression
  std::regex expression_;
  size_t size_ = 0;
};

// The longest literal that every match of `pattern` contains; empty if none is obvious.
std::string required_literal(const std::string& pattern);

}  // namespace vitrail::weights
