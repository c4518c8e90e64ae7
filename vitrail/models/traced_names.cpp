// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/traced_names.h"

namespace vitrail::models {
namespace {

// Parsed once, because each has dozens of expressions.
const std::vector<weights::KeyMap>& builtin_maps() {
  static const std::vector<weights::KeyMap> maps = [] {
    std::vector<weights::KeyMap> result;
    for (const std::string& name : weights::KeyMap::builtin_names()) result.push_back(weights::KeyMap::builtin(name));
    return result;
  }();
  return maps;
}

}  // namespace

Tensor TracedName::of(const Tensor& value) const {
  const int64_t size = value.size(-1) / parts;
  return parts == 1 ? value : value.narrow(value.rank() - 1, part * size, size);
}

std::vector<TracedName> traced_names(const std::string& name, const weights::KeyMap* own) {
  std::vector<TracedName> result{{name}};
  auto add = [&](const weights::KeyMap& map) {
    const weights::KeyMatch match = map.match_module(name);
    if (match.rule) result.push_back({match.native, match.rule->part, match.rule->parts});
  };
  if (own) add(*own);
  for (const weights::KeyMap& map : builtin_maps()) add(map);
  return result;
}

}  // namespace vitrail::models
