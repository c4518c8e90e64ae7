// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/key_map_json_internal.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/base/json_checks_internal.h"

namespace vitrail::weights {
namespace {

using nlohmann::json;

constexpr int64_t kMaxParts = 64;
constexpr size_t kMaxTo = 512;  // characters; each $1 in it may become a complete key

void check_keys(const json& object, const std::vector<std::string>& known, const std::string& where) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw Error(where, "only the keys of a key map", "\"" + key + "\"");
    }
  }
}

std::string text_of(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) {
    throw Error(where, str("\"", key, "\" as a string"), found == object.end() ? "none" : found->type_name());
  }
  return found->get<std::string>();
}

void read_part(const json& value, KeyRule& rule) {
  const auto is_count = [](const json& v) { return v.is_number_integer(); };
  const bool pair = value.is_array() && value.size() == 2 && is_count(value[0]) && is_count(value[1]);
  const int64_t part = pair ? value[0].get<int64_t>() : -1, parts = pair ? value[1].get<int64_t>() : -1;
  if (part < 0 || parts < 1 || parts > kMaxParts || part >= parts) {
    throw Error(rule.label, str("\"part\" as [i, n] with 0 <= i < n <= ", kMaxParts),
                value.dump(-1, ' ', true).substr(0, 80));
  }
  rule.part = part;
  rule.parts = parts;
}

// "skip" or "rows"; 0 if it is absent.
int64_t read_row_count(const json& object, const char* key, const std::string& where) {
  constexpr int64_t kMaxRows = 65536;
  const json value = object.value(key, json(0));
  if (value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() <= kMaxRows)
    return value.get<int64_t>();
  throw Error(where, str("\"", key, "\" as a number of rows, at most ", kMaxRows),
              value.dump(-1, ' ', true).substr(0, 80));
}

void read_sizes(const json& value, KeyRule& rule) {
  if (!value.is_object()) throw Error(rule.label, "\"sizes\" as an object", value.type_name());
  for (const auto& [axis, size] : value.items()) {
    if (!rule.rearrange || !rule.rearrange->has_axis(axis)) {
      throw Error(rule.label, "\"sizes\" of axes in \"rearrange\"", "\"" + axis + "\"");
    }
    if (size.is_string()) {
      rule.sizes[axis] = size.get<std::string>();
    } else if (size.is_number_integer() && size.get<int64_t>() > 0) {
      rule.sizes[axis] = size.get<int64_t>();
    } else {
      throw Error(rule.label, "a size as a positive integer or the name of a field",
                  "another value for \"" + axis + "\"");
    }
  }
}

// {"to": [a, b], "split": [1, 2]}: the first third of the source is a, the other two are b.  One rule per target; ""
// drops its rows.
std::vector<KeyRule> split_rules(const json& object, const KeyRule& rule) {
  const json& to = object["to"];
  const json split = object.value("split", json());
  int64_t cuts = 0;
  for (const json& count : split.is_array() ? split : json::array()) {
    const bool valid = count.is_number_integer() && count.get<int64_t>() >= 1 && count.get<int64_t>() <= kMaxParts;
    cuts = valid ? cuts + count.get<int64_t>() : kMaxParts + 1;
    if (cuts > kMaxParts) break;
  }
  if (split.size() != to.size() || cuts < 2 || cuts > kMaxParts) {
    throw Error(rule.label, str("\"split\" as one positive number per name in \"to\", of sum 2 to ", kMaxParts),
                split.dump(-1, ' ', true).substr(0, 80));
  }
  std::vector<KeyRule> rules;
  int64_t first = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    KeyRule& target = rules.emplace_back(rule);
    target.to = text_of(json{{"to", to[i]}}, "to", rule.label);
    target.drop = target.to.empty();
    target.first = first;
    target.last = first += split[i].get<int64_t>();
    target.cuts = cuts;
  }
  return rules;
}

// The rules of an element of "rules": one, or one per name in "to".
std::vector<KeyRule> read_rule(const json& object, const std::string& where) {
  if (!object.is_object()) throw Error(where, "an object", object.type_name());
  KeyRule rule;
  rule.label = where;
  rule.from = text_of(object, "from", where);
  rule.label = str(where, " (\"", rule.from.substr(0, 80), "\")");
  check_keys(object, {"from", "to", "part", "split", "skip", "rows", "rearrange", "sizes", "drop"}, rule.label);
  if (const auto drop = object.find("drop"); drop != object.end()) {
    if (!drop->is_boolean()) throw Error(rule.label, "\"drop\" as true or false", drop->type_name());
    rule.drop = drop->get<bool>();
  }
  if (rule.drop) {
    if (object.size() != 2) throw Error(rule.label, "nothing beside \"from\" and \"drop\"", "more");
    return {rule};
  }
  if (object.contains("part")) read_part(object["part"], rule);
  rule.skip = read_row_count(object, "skip", rule.label);
  rule.rows = read_row_count(object, "rows", rule.label);
  if (object.contains("rearrange")) {
    rule.rearrange = Rearrange::parse(text_of(object, "rearrange", rule.label), rule.label);
  }
  if (object.contains("sizes")) read_sizes(object["sizes"], rule);
  std::vector<KeyRule> rules{rule};
  if (object.contains("to") && object["to"].is_array()) {
    rules = split_rules(object, rule);
  } else {
    if (object.contains("split")) throw Error(rule.label, "\"to\" as a list of names with \"split\"", "one name");
    rules[0].to = text_of(object, "to", rule.label);
  }
  for (const KeyRule& target : rules) {
    if (target.to.size() <= kMaxTo) continue;
    throw Error(rule.label, str("\"to\" of at most ", kMaxTo, " characters"), str(target.to.size()));
  }
  return rules;
}

json parse_json(const std::string& text, const std::string& where) {
  if (json_depth(text) > 8) throw Error(where, "a key map", "JSON that is nested deeper");
  json parsed;
  try {
    parsed = json::parse(text);
  } catch (const json::exception& error) {
    throw Error(where, "a key map in JSON", json_fault(text, error));
  }
  if (!parsed.is_object()) throw Error(where, "a JSON object", parsed.type_name());
  return parsed;
}

// The path of a module without parameters, such as an activation: {"from": …, "to": …}.
KeyRule read_module(const json& object, const std::string& where) {
  const KeyRule rule = read_rule(object, where).front();
  if (rule.drop || rule.rearrange || rule.cuts > 1)
    throw Error(rule.label, "only \"from\", \"to\" and \"part\"", "more");
  return rule;
}

// An element is a key, or a list of alternative keys.
std::vector<std::vector<std::string>> read_detect(const json& map, const std::string& where) {
  std::vector<std::vector<std::string>> detect;
  const auto found = map.find("detect");
  if (found == map.end()) return detect;
  if (!found->is_array()) throw Error(where, "\"detect\" as an array of keys", found->type_name());
  for (const json& element : *found) {
    std::vector<std::string>& any = detect.emplace_back();
    for (const json& key : element.is_array() ? element : json::array({element})) {
      if (!key.is_string()) throw Error(where, "\"detect\" as an array of keys", key.type_name());
      any.push_back(key.get<std::string>());
    }
  }
  return detect;
}

// ["old", "new"], or a list of such pairs.
std::vector<KeyPrefix> read_prefixes(const json& value, const std::string& where) {
  const auto is_text = [](const json& part) { return part.is_string(); };
  const bool several = value.is_array() && !value.empty() && value[0].is_array();
  std::vector<KeyPrefix> prefixes;
  for (const json& pair : several ? value : json::array({value})) {
    if (!pair.is_array() || pair.size() != 2 || !std::ranges::all_of(pair, is_text))
      throw Error(where, "\"base_prefix\" as [\"old\", \"new\"], or a list of such", value.dump().substr(0, 80));
    prefixes.push_back({pair[0].get<std::string>(), pair[1].get<std::string>()});
  }
  return prefixes;
}

}  // namespace

ParsedKeyMap parse_key_map(const std::string& text, const std::string& where, bool only_detect) {
  const json map = parse_json(text, where);
  check_keys(map, {"name", "base", "base_prefix", "about", "detect", "rules", "modules", "model_args"}, where);
  ParsedKeyMap result;
  result.name = text_of(map, "name", where);
  if (map.contains("base")) result.base = text_of(map, "base", where);
  if (map.contains("base_prefix")) result.base_prefixes = read_prefixes(map["base_prefix"], where);
  if (map.contains("about")) result.about = text_of(map, "about", where);
  if (map.contains("model_args")) result.model_args = map["model_args"].dump();
  result.detect = read_detect(map, where);
  const auto rules = map.find("rules");
  if (rules == map.end() || !rules->is_array()) throw Error(where, "\"rules\" as an array", "none");
  for (size_t i = 0; !only_detect && i < rules->size(); ++i) {
    for (KeyRule& rule : read_rule((*rules)[i], str(where, ": rule ", i + 1))) result.rules.push_back(std::move(rule));
  }
  const json modules = map.value("modules", json::array());
  if (!modules.is_array()) throw Error(where, "\"modules\" as an array", modules.type_name());
  for (size_t i = 0; !only_detect && i < modules.size(); ++i) {
    result.modules.push_back(read_module(modules[i], str(where, ": module ", i + 1)));
  }
  return result;
}

}  // namespace vitrail::weights
