// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text made of counts and lists, for messages and files.
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "vitrail/base/error.h"

namespace vitrail {

// "1 image", "2 images".
template <class Count>
std::string counted(Count count, const std::string& noun) {
  return str(count, " ", noun, count == 1 ? "" : "s");
}

// "a, b": what `text` makes of each item, or the item, as an output stream prints it, with separators between them.
template <class Items, class Text = std::identity>
std::string join(const Items& items, std::string_view separator = ", ", Text text = {}) {
  std::ostringstream out;
  std::string_view before;
  for (const auto& item : items) out << std::exchange(before, separator) << std::invoke(text, item);
  return out.str();
}

// "a, b and 7 more": the first `max` items of a list in a message, and the number of the others.
template <class Items, class Text = std::identity>
std::string join_first(size_t max, const Items& items, std::string_view separator = ", ", Text text = {}) {
  std::ostringstream out;
  std::string_view before;
  size_t count = 0;
  for (const auto& item : items) {
    if (count++ < max) out << std::exchange(before, separator) << std::invoke(text, item);
  }
  if (count > max) out << " and " << count - max << " more";
  return out.str();
}

}  // namespace vitrail
