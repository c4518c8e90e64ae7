// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string_view>

namespace vitrail {

// The enumerator called `name`; none if there is none.  name_of(Enum) is a switch without default over enumerators that
// count up from 0, so that a forgotten name is a compile error, and returns null for any other value.
template <class Enum>
std::optional<Enum> enum_from_name(std::string_view name) {
  for (int i = 0;; ++i) {
    const char* const candidate = name_of(static_cast<Enum>(i));
    if (!candidate) return std::nullopt;
    if (candidate == name) return static_cast<Enum>(i);
  }
}

}  // namespace vitrail
