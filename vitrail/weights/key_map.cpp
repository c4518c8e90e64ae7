// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/key_map.h"

#include <algorithm>
#include <span>
#include <unordered_set>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/weights/builtin_key_maps_internal.h"
#include "vitrail/weights/family_keys_internal.h"
#include "vitrail/weights/key_map_json_internal.h"
#include "vitrail/weights/key_pattern_internal.h"

namespace vitrail::weights {
namespace {

// Limits of untrusted key maps: the sizes of all patterns together, which bound the time for a key of 512 characters to
// about two seconds, and the length of a new name, which may repeat groups of the key.
constexpr size_t kMaxPatterns = 65'536;
constexpr size_t kMaxName = 4096;

using KeySet = std::unordered_set<std::string>;

std::string joined(const std::vector<std::string>& words, size_t max_count) {
  const std::span listed = std::span(words).first(std::min(words.size(), max_count));
  return join(listed, ", ", [](const std::string& word) { return word.substr(0, 80); });
}

// The rules of a base for names with the prefixes in front.  Without a rule a name keeps what follows the prefix.
std::vector<KeyRule> behind_prefix(std::vector<KeyRule> rules, const KeyPrefix& prefix) {
  if (prefix.from.empty() && prefix.to.empty()) return rules;
  for (KeyRule& rule : rules) {
    rule.from = prefix.from + "(?:" + rule.from + ")";
    if (!rule.to.empty()) rule.to = prefix.to + rule.to;
  }
  KeyRule& others = rules.emplace_back();
  others.from = prefix.from + "(.*)";
  others.to = prefix.to + "$1";
  others.label = "base_prefix";
  return rules;
}

// Adds what a map has from its base: rules behind its own, and model_args unless it has some.
void inherit(const ParsedKeyMap& base, ParsedKeyMap& map) {
  const auto append = [&](const std::vector<KeyRule>& from, std::vector<KeyRule>& to) {
    if (map.base_prefixes.empty()) std::ranges::copy(from, std::back_inserter(to));
    for (const KeyPrefix& prefix : map.base_prefixes)
      std::ranges::copy(behind_prefix(from, prefix), std::back_inserter(to));
  };
  append(base.rules, map.rules);
  append(base.modules, map.modules);
  if (map.model_args.empty()) map.model_args = base.model_args;
}

// patterns: one per rule.
KeyMatch first_match(const std::vector<KeyRule>& rules, const std::vector<KeyPattern>& patterns,
                     const std::string& key) {
  for (size_t i = 0; i < patterns.size(); ++i) {
    auto native = patterns[i].replace(key, rules[i].to);
    if (!native) continue;
    if (native->size() > kMaxName)
      throw Error(rules[i].label, str("names of at most ", kMaxName, " characters"), "more");
    return {std::move(*native), &rules[i]};
  }
  return {key, nullptr};
}

}  // namespace

struct KeyMap::Impl {
  ParsedKeyMap text;
  std::vector<KeyPattern> patterns, module_patterns;  // one per rule
};

KeyMap KeyMap::parse(const std::string& json, const std::string& where) {
  auto impl = std::make_shared<Impl>();
  impl->text = parse_key_map(json, where);
  if (!impl->text.base.empty()) inherit(builtin(impl->text.base).impl_->text, impl->text);
  size_t size = 0;
  auto compile = [&size](const std::vector<KeyRule>& rules, std::vector<KeyPattern>& patterns) {
    for (const KeyRule& rule : rules) {
      size += patterns.emplace_back(rule.from, rule.label).size();
      if (size <= kMaxPatterns) continue;
      throw Error(rule.label, str("at most ", kMaxPatterns, " characters in all patterns, counts written out"), "more");
    }
  };
  compile(impl->text.rules, impl->patterns);
  compile(impl->text.modules, impl->module_patterns);
  KeyMap result;
  result.impl_ = std::move(impl);
  return result;
}

KeyMap KeyMap::builtin(const std::string& name) {
  for (const EmbeddedFile& map : builtin_key_maps()) {
    if (map.name == name) return parse(std::string(map.text), "key map " + name);
  }
  throw Error("key map", "one of " + join(builtin_names()), "\"" + name + "\"");
}

std::vector<std::string> KeyMap::builtin_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& map : builtin_key_maps()) names.emplace_back(map.name);
  return names;
}

KeyMap KeyMap::detect(const std::vector<std::string>& keys) {
  const KeySet present(keys.begin(), keys.end());
  for (const FamilyKeys& family : builtin_family_keys()) {
    if (weights::recognises(family, present)) return builtin(family.name);
  }
  std::vector<std::string> sorted(keys);
  std::sort(sorted.begin(), sorted.end());
  throw Error("key map", "the keys of a known family (" + join(builtin_names()) + "); give a key map for others",
              keys.empty() ? "a file without tensors"
                           : str(keys.size(), keys.size() == 1 ? " key: " : " keys such as ", joined(sorted, 8)));
}

const std::string& KeyMap::name() const { return impl_->text.name; }
const std::string& KeyMap::about() const { return impl_->text.about; }
const std::string& KeyMap::model_args() const { return impl_->text.model_args; }
const std::vector<KeyRule>& KeyMap::rules() const { return impl_->text.rules; }

bool KeyMap::recognises(const std::vector<std::string>& keys) const {
  return weights::recognises({name(), impl_->text.detect}, KeySet(keys.begin(), keys.end()));
}

KeyMatch KeyMap::match(const std::string& key) const { return first_match(impl_->text.rules, impl_->patterns, key); }

std::vector<KeyMatch> KeyMap::match_all(const std::string& key) const {
  std::vector<KeyMatch> matches{match(key)};
  if (!matches.front().rule || matches.front().rule->cuts == 1) return matches;
  const std::vector<KeyRule>& all = rules();
  for (size_t i = static_cast<size_t>(matches.front().rule - all.data()); all[i].last < all[i].cuts; ++i) {
    matches.push_back({*impl_->patterns[i + 1].replace(key, all[i + 1].to), &all[i + 1]});
  }
  return matches;
}

KeyMatch KeyMap::match_module(const std::string& path) const {
  KeyMatch module = first_match(impl_->text.modules, impl_->module_patterns, path);
  if (module.rule) return module;
  for (const char* parameter : {".weight", ".gamma", ".lambda1"}) {
    KeyMatch weight = match(path + parameter);
    if (weight.rule && !weight.dropped()) return {weight.native.substr(0, weight.native.rfind('.')), weight.rule};
  }
  return {path, nullptr};
}

}  // namespace vitrail::weights
