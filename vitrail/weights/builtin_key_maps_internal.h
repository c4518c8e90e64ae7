// SPDX-License-Identifier: Apache-2.0
#pragma once
// The key maps built into the library: the files of key_maps/, embedded when it is built (see key_maps.cmake).
#include <span>
#include <string_view>

namespace vitrail::weights {

struct BuiltinKeyMap {
  std::string_view name;  // the file's name without .json
  std::string_view json;
};

// In the order in which families are recognised: those whose keys include another's come before it.
std::span<const BuiltinKeyMap> builtin_key_maps();

}  // namespace vitrail::weights
