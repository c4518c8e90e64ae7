// SPDX-License-Identifier: Apache-2.0
#pragma once
// The built-in key maps: the files of key_maps/, which key_maps.cmake embeds at build time.
#include <span>
#include <string_view>

namespace vitrail::weights {

struct BuiltinKeyMap {
  std::string_view name;  // the file's name without .json
  std::string_view json;
};

// In the order of detection: a family whose keys include those of another comes first.
std::span<const BuiltinKeyMap> builtin_key_maps();

}  // namespace vitrail::weights
