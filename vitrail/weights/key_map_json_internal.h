// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parses and validates the JSON form of a key map.
#include <string>
#include <vector>

#include "vitrail/weights/key_map.h"

namespace vitrail::weights {

// What is in front of the names that the rules of a base are for: `from` in an expression, `to` in the new name.
struct KeyPrefix {
  std::string from, to;
};

struct ParsedKeyMap {
  std::string name, base, about, model_args;
  std::vector<KeyPrefix> base_prefixes;          // the rules of the base are repeated for each; none: as they are
  std::vector<std::vector<std::string>> detect;  // one of each list must be present
  std::vector<KeyRule> rules, modules;
};

// Throws Error naming `where` and the invalid rule.  With `only_detect` the rules and modules are skipped.
ParsedKeyMap parse_key_map(const std::string& json, const std::string& where, bool only_detect = false);

}  // namespace vitrail::weights
