// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of YAML that YOLO's data files have: keys with a text, a list of texts or a map of texts.
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vitrail::data {

struct YamlValue {
  size_t line = 0;
  bool is_text = true;
  std::string text = {};
  // A list with its positions as keys, "0", "1", …, or a map.
  std::vector<std::pair<std::string, std::string>> items = {};
};

// The keys of the outermost map.  Deeper values than lists and maps of texts are left out.  Throws Error naming the
// line for text that is no such map, and for a key that comes twice.
std::map<std::string, YamlValue> parse_yaml(std::string_view text, const std::string& where);

}  // namespace vitrail::data
