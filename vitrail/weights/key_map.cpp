#include "vitrail/weights/key_map.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <unordered_set>

#include "vitrail/base/error.h"
#include "vitrail/weights/builtin_key_maps.h"

namespace vitrail::weights {
namespace {

using nlohmann::json;

// Far above what real names need; they bound the memory and the recursion of the expression compiler.
constexpr size_t kMaxPattern = 512;
constexpr size_t kMaxKey = 1024;
constexpr int64_t kMaxParts = 64;

// libstdc++'s breadth-first matcher takes time linear in the key and no recursion over it, where the default one can
// be made to run for ever or to exhaust the stack.  It has no back-references; no key needs them.
std::regex compile(const std::string& pattern, const std::string& where) {
  if (pattern.size() > kMaxPattern)
    throw Error(where, str("at most ", kMaxPattern, " characters"), str(pattern.size()));
  try {
#ifdef __GLIBCXX__
    return std::regex(pattern, std::regex::ECMAScript | std::regex_constants::__polynomial);
#else
    return std::regex(pattern, std::regex::ECMAScript);
#endif
  } catch (const std::regex_error& error) {
    throw Error(where, "a regular expression without back-references", str("\"", pattern, "\" (", error.what(), ")"));
  }
}

// The plain characters that every match of `pattern` begins with; matching them first spares most keys the expression.
std::string literal_prefix(const std::string& pattern) {
  if (pattern.find('|') != std::string::npos) {
    int depth = 0;
    for (size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] == '\\') {
        ++i;
      } else if (pattern[i] == '(') {
        ++depth;
      } else if (pattern[i] == ')') {
        --depth;
      } else if (pattern[i] == '|' && depth == 0) {
        return "";
      } else if (pattern[i] == '[') {
        return "";  // a class may hold any of these characters; not worth reading here
      }
    }
  }
  std::string prefix;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '*' || c == '?' || c == '{') {  // the character before may be absent
      if (!prefix.empty()) prefix.pop_back();
      return prefix;
    }
    if (c == '\\') {
      if (i + 1 >= pattern.size() || pattern[i + 1] != '.') return prefix;
      prefix += pattern[++i];
    } else if (std::string("([+.^$)|]}").find(c) != std::string::npos) {
      return prefix;
    } else {
      prefix += c;
    }
  }
  return prefix;
}

struct Compiled {
  std::string prefix;
  std::regex expression;
};

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
      throw Error(rule.label, "a size as a positive integer or a field's name", "another value for \"" + axis + "\"");
    }
  }
}

KeyRule read_rule(const json& object, const std::string& where) {
  if (!object.is_object()) throw Error(where, "an object", object.type_name());
  KeyRule rule;
  rule.label = where;
  rule.from = text_of(object, "from", where);
  rule.label = str(where, " (\"", rule.from.substr(0, 80), "\")");
  check_keys(object, {"from", "to", "part", "rearrange", "sizes", "drop"}, rule.label);
  if (const auto drop = object.find("drop"); drop != object.end()) {
    if (!drop->is_boolean()) throw Error(rule.label, "\"drop\" as true or false", drop->type_name());
    rule.drop = drop->get<bool>();
  }
  if (rule.drop) {
    if (object.size() != 2) throw Error(rule.label, "nothing beside \"from\" and \"drop\"", "more");
    return rule;
  }
  rule.to = text_of(object, "to", rule.label);
  if (object.contains("part")) read_part(object["part"], rule);
  if (object.contains("rearrange")) {
    rule.rearrange = Rearrange::parse(text_of(object, "rearrange", rule.label), rule.label);
  }
  if (object.contains("sizes")) read_sizes(object["sizes"], rule);
  return rule;
}

json parse_json(const std::string& text, const std::string& where) {
  const auto shallow = [&](int depth, json::parse_event_t, json&) {
    if (depth > 8) throw Error(where, "a key map", "JSON nested deeper than one");
    return true;
  };
  json parsed;
  try {
    parsed = json::parse(text, shallow);
  } catch (const json::exception& error) {
    throw Error(where, "a key map in JSON", error.what());
  }
  if (!parsed.is_object()) throw Error(where, "a JSON object", parsed.type_name());
  return parsed;
}

std::vector<std::string> read_detect(const json& map, const std::string& where) {
  std::vector<std::string> keys;
  const auto found = map.find("detect");
  if (found == map.end()) return keys;
  if (!found->is_array()) throw Error(where, "\"detect\" as an array of keys", found->type_name());
  for (const json& key : *found) {
    if (!key.is_string()) throw Error(where, "\"detect\" as an array of keys", key.type_name());
    keys.push_back(key.get<std::string>());
  }
  return keys;
}

bool contains_all(const std::unordered_set<std::string>& keys, const std::vector<std::string>& wanted) {
  return !wanted.empty() &&
         std::all_of(wanted.begin(), wanted.end(), [&](const std::string& key) { return keys.contains(key); });
}

}  // namespace

struct KeyMap::Impl {
  std::string name;
  std::vector<std::string> detect;
  std::vector<KeyRule> rules;
  std::vector<Compiled> compiled;
};

KeyMap KeyMap::parse(const std::string& text, const std::string& where) {
  const json map = parse_json(text, where);
  check_keys(map, {"name", "detect", "rules"}, where);
  auto impl = std::make_shared<Impl>();
  impl->name = text_of(map, "name", where);
  impl->detect = read_detect(map, where);
  const auto rules = map.find("rules");
  if (rules == map.end() || !rules->is_array()) throw Error(where, "\"rules\" as an array", "none");
  for (size_t i = 0; i < rules->size(); ++i) {
    KeyRule rule = read_rule((*rules)[i], str(where, ": rule ", i + 1));
    impl->compiled.push_back({literal_prefix(rule.from), compile(rule.from, rule.label)});
    impl->rules.push_back(std::move(rule));
  }
  KeyMap result;
  result.impl_ = std::move(impl);
  return result;
}

KeyMap KeyMap::builtin(const std::string& name) {
  std::string known;
  for (const BuiltinKeyMap& map : builtin_key_maps()) {
    if (map.name == name) return parse(std::string(map.json), "key map " + name);
    known.append(known.empty() ? "" : ", ").append(map.name);
  }
  throw Error("key map", "one of " + known, "\"" + name + "\"");
}

std::vector<std::string> KeyMap::builtin_names() {
  std::vector<std::string> names;
  for (const BuiltinKeyMap& map : builtin_key_maps()) names.emplace_back(map.name);
  return names;
}

std::vector<std::string> KeyMap::matching(const std::vector<std::string>& keys) {
  const std::unordered_set<std::string> present(keys.begin(), keys.end());
  std::vector<std::string> names;
  for (const BuiltinKeyMap& map : builtin_key_maps()) {
    const std::string where = str("key map ", map.name);
    if (contains_all(present, read_detect(parse_json(std::string(map.json), where), where)))
      names.emplace_back(map.name);
  }
  return names;
}

KeyMap KeyMap::detect(const std::vector<std::string>& keys) {
  const std::unordered_set<std::string> present(keys.begin(), keys.end());
  for (const BuiltinKeyMap& map : builtin_key_maps()) {
    const std::string where = str("key map ", map.name);
    if (contains_all(present, read_detect(parse_json(std::string(map.json), where), where))) {
      return builtin(std::string(map.name));
    }
  }
  std::vector<std::string> sorted(keys);
  std::sort(sorted.begin(), sorted.end());
  std::string seen, families;
  for (size_t i = 0; i < std::min<size_t>(sorted.size(), 8); ++i)
    seen.append(i ? ", " : "").append(sorted[i].substr(0, 80));
  for (const std::string& name : builtin_names()) families.append(families.empty() ? "" : ", ").append(name);
  throw Error("key map", "the keys of a known family (" + families + "); give a key map for others",
              keys.empty() ? "a file without tensors" : str(keys.size(), " keys such as ", seen));
}

const std::string& KeyMap::name() const { return impl_->name; }
const std::vector<std::string>& KeyMap::detect_keys() const { return impl_->detect; }
const std::vector<KeyRule>& KeyMap::rules() const { return impl_->rules; }

KeyMatch KeyMap::match(const std::string& key) const {
  if (key.size() > kMaxKey) return {key, nullptr};
  for (size_t i = 0; i < impl_->rules.size(); ++i) {
    const auto& [prefix, expression] = impl_->compiled[i];
    if (!key.starts_with(prefix)) continue;
    std::smatch groups;
    if (!std::regex_match(key, groups, expression)) continue;
    return {groups.format(impl_->rules[i].to), &impl_->rules[i]};
  }
  return {key, nullptr};
}

}  // namespace vitrail::weights
