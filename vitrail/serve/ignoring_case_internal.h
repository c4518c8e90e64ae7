// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of HTTP that may be written in small or capital letters.
#include <algorithm>
#include <cctype>
#include <string_view>

namespace vitrail::serve {

// lower: in small letters.
inline bool equal_ignoring_case(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower,
                            [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

inline bool begins_ignoring_case(std::string_view text, std::string_view lower) {
  return equal_ignoring_case(text.substr(0, lower.size()), lower);
}

}  // namespace vitrail::serve
