// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/wrapper_prefixes_internal.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace vitrail::weights {
namespace {

bool strip_from_all(std::vector<std::string>& names, std::string_view prefix) {
  const auto begins = [&](const std::string& name) { return name.starts_with(prefix); };
  if (names.empty() || !std::all_of(names.begin(), names.end(), begins)) return false;
  for (std::string& name : names) name.erase(0, prefix.size());
  return true;
}

bool strip_where_present(std::vector<std::string>& names, std::string_view prefix) {
  std::vector<std::string> stripped = names;
  for (std::string& name : stripped) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  if (stripped == names) return false;
  const std::unordered_set<std::string_view> distinct(stripped.begin(), stripped.end());
  if (distinct.size() != stripped.size()) return false;
  names = std::move(stripped);
  return true;
}

}  // namespace

void strip_wrapper_prefixes(std::vector<std::string>& names) {
  while (strip_from_all(names, "module.") || strip_from_all(names, "_orig_mod.") || strip_from_all(names, "model.") ||
         strip_where_present(names, "backbone.")) {
  }
}

}  // namespace vitrail::weights
