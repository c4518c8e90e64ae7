// SPDX-License-Identifier: Apache-2.0
#pragma once
// The keys by which the built-in families of key maps recognise a checkpoint.
#include <string>
#include <unordered_set>
#include <vector>

namespace vitrail::weights {

struct FamilyKeys {
  std::string name;
  std::vector<std::vector<std::string>> detect;  // one of each list must be present
};

// In the order of detection, without maps that have no "detect": those are chosen by name.  Parsed on first use.
const std::vector<FamilyKeys>& builtin_family_keys();

// Whether one key of each list, with `prefix` in front, is present.
bool recognises(const FamilyKeys& family, const std::unordered_set<std::string>& keys, const std::string& prefix = "");

}  // namespace vitrail::weights
