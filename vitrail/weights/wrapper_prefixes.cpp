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

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "module" is also the name of models in checkpoints ("model_ema.module."): it is a wrapper behind a block's number.
bool is_wrapper(std::string_view part, std::string_view part_before) {
  if (part == "module") return is_number(part_before);
  return part == "_orig_mod" || part == "_checkpoint_wrapped_module" || part == "_fsdp_wrapped_module";
}

}  // namespace

std::string without_inner_wrappers(std::string_view name) {
  std::string result;
  std::string_view before;
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.')) {
    const std::string_view part = name.substr(0, dot);
    if (!is_wrapper(part, before)) {
      result.append(part).append(".");
      before = part;
    }
    name.remove_prefix(dot + 1);
  }
  return result.append(name);
}

size_t strip_inner_wrappers(std::vector<std::string>& names) {
  std::vector<std::string> stripped;
  size_t changed = 0;
  for (const std::string& name : names) {
    stripped.push_back(without_inner_wrappers(name));
    changed += stripped.back() == name ? 0 : 1;
  }
  const std::unordered_set<std::string_view> distinct(stripped.begin(), stripped.end());
  if (changed == 0 || distinct.size() != stripped.size()) return 0;
  names = std::move(stripped);
  return changed;
}

void strip_wrapper_prefixes(std::vector<std::string>& names) {
  while (strip_from_all(names, "module.") || strip_from_all(names, "_orig_mod.") ||
         strip_from_all(names, "_fsdp_wrapped_module.") || strip_from_all(names, "model.") ||
         strip_from_all(names, "backbone.")) {
  }
}

}  // namespace vitrail::weights
