// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/family_keys_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/weights/builtin_key_maps_internal.h"
#include "vitrail/weights/key_map_json_internal.h"

namespace vitrail::weights {

const std::vector<FamilyKeys>& builtin_family_keys() {
  static const std::vector<FamilyKeys> families = [] {
    std::vector<FamilyKeys> result;
    for (const EmbeddedFile& map : builtin_key_maps()) {
      FamilyKeys family{std::string(map.name),
                        parse_key_map(std::string(map.text), str("key map ", map.name), true).detect};
      if (!family.detect.empty()) result.push_back(std::move(family));
    }
    return result;
  }();
  return families;
}

bool recognises(const FamilyKeys& family, const std::unordered_set<std::string>& keys, const std::string& prefix) {
  const auto present = [&](const std::string& key) { return keys.contains(prefix + key); };
  const auto any = [&](const auto& alternatives) { return std::ranges::any_of(alternatives, present); };
  return !family.detect.empty() && std::ranges::all_of(family.detect, any);
}

}  // namespace vitrail::weights
