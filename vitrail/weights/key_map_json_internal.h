// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading the JSON form of a key map; only key_map.cpp needs it.
#include <string>
#include <vector>

#include "vitrail/weights/key_map.h"

namespace vitrail::weights {

// A key map as it is written, checked.
struct KeyMapText {
  std::string name;
  std::vector<std::vector<std::string>> detect;
  std::vector<KeyRule> rules;
};

// Throws Error naming `where` and the rule that is wrong.  With `only_detect` the rules are passed over.
KeyMapText read_key_map(const std::string& json, const std::string& where, bool only_detect = false);

}  // namespace vitrail::weights
