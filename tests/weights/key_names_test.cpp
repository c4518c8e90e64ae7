// SPDX-License-Identifier: Apache-2.0
// Every rule of every built-in key map.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <set>

#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/weights/key_map.h"

namespace vitrail::weights {
namespace {

std::string text_of(const AxisSizes& sizes) {
  std::string text;
  for (const auto& [axis, size] : sizes) {
    const auto* const number = std::get_if<int64_t>(&size);
    text += " " + axis + "=" + (number != nullptr ? std::to_string(*number) : std::get<std::string>(size));
  }
  return text;
}

// The native names, then what the rule does beside giving them.
std::string described(const std::vector<KeyMatch>& matches) {
  std::string text, split;
  for (const KeyMatch& match : matches) {
    text += (text.empty() ? "" : " ") + (match.dropped() ? "(dropped)" : match.native);
    if (match.rule != nullptr) split += str(split.empty() ? " split " : "/", match.rule->last - match.rule->first);
  }
  if (matches.front().rule == nullptr) return text + " (no rule)";
  const KeyRule& rule = *matches.front().rule;
  if (rule.parts > 1) text += str(" part ", rule.part, "/", rule.parts);
  if (rule.cuts > 1) text += split;
  if (rule.skip > 0) text += str(" skip ", rule.skip);
  if (rule.rows > 0) text += str(" rows ", rule.rows);
  text += text_of(rule.sizes);
  return rule.rearrange ? text + " : " + rule.rearrange->pattern() : text;
}

TEST(KeyNames, OfOtherLibrariesBecomeTheNativeOnes) {
  std::ifstream file(testing::fixture("weights/key_names.txt"));
  std::optional<KeyMap> map;
  std::set<std::string> maps;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    if (line.starts_with("[")) {
      const size_t end = line.find(']');
      map = KeyMap::builtin(line.substr(1, end - 1));
      maps.insert(map->name());
      EXPECT_EQ(map->model_args(), end + 2 < line.size() ? line.substr(end + 2) : "") << map->name();
      continue;
    }
    const size_t arrow = line.find(" -> ");
    ASSERT_NE(arrow, line.npos) << line;
    const std::string key = line.substr(0, arrow), want = line.substr(arrow + 4);
    if (key.starts_with("module ")) {
      EXPECT_EQ(described({map->match_module(key.substr(7))}), want) << map->name() << ": " << key;
    } else {
      EXPECT_EQ(described(map->match_all(key)), want) << map->name() << ": " << key;
    }
  }
  EXPECT_EQ(maps.size(), KeyMap::builtin_names().size());
}

}  // namespace
}  // namespace vitrail::weights
