// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/rule_proposals_internal.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/weights/config_advice_internal.h"

namespace vitrail::weights {
namespace {

constexpr size_t kMaxRules = 24;
constexpr size_t kMaxKeyGroups = 1000, kMaxLayerName = 200;  // limit the time that hostile files take

bool is_number(const std::string& word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> split(const std::string& name, const char* separators) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (std::string_view(separators).find(c) == std::string_view::npos) {
      words.back() += c;
    } else {
      words.emplace_back();
    }
  }
  return words;
}

// How PyTorch and PEFT store a weight in another form than its own tensor.
struct SplitWeights {
  const char* name;
  const char* advice;  // what gives the weight itself
};
constexpr SplitWeights kPruned{"pruned", "before saving, call torch.nn.utils.prune.remove()"},
    kWeightNorm{"weight-normalised", "before saving, call torch.nn.utils.remove_weight_norm()"},
    kSpectralNorm{"spectrally normalised", "before saving, call torch.nn.utils.remove_spectral_norm()"},
    kParametrized{"parametrised", "before saving, call torch.nn.utils.parametrize.remove_parametrizations()"},
    kLora{"LoRA", "before saving, call PEFT's merge_and_unload()"},
    kFlat{"FSDP's flat", "save the state dict with StateDictType.FULL_STATE_DICT"},
    kQuantized{"PyTorch's quantised", "save the model before its quantisation"};

using NameSet = std::set<std::string>;

// Whether the name is "X" + one end, beside "X" + the other.
bool is_pair_of(const std::string& name, const NameSet& names, const char* end, const char* other_end) {
  return name.ends_with(end) && names.contains(name.substr(0, name.size() - std::strlen(end)) + other_end);
}

bool is_of_pair(const std::string& name, const NameSet& names, const char* a, const char* b) {
  return is_pair_of(name, names, a, b) || is_pair_of(name, names, b, a);
}

// The kind of weight that a tensor is a part of; null if it is a weight itself.
const SplitWeights* split_weights_of(const std::string& name, const NameSet& names) {
  if (name.find(".parametrizations.") != std::string::npos) return &kParametrized;
  // PEFT has the trained copy of a layer below modules_to_save beside the untrained one below original_module.
  for (const char* part : {"lora_", ".base_layer.", ".original_module.", ".modules_to_save."}) {
    if (name.find(part) != std::string::npos) return &kLora;
  }
  if (name.ends_with("_flat_param")) return &kFlat;
  if (is_of_pair(name, names, ".scale", ".zero_point")) return &kQuantized;
  if (is_of_pair(name, names, "_orig", "_mask")) return &kPruned;
  if (is_of_pair(name, names, "_orig", "_u") || is_of_pair(name, names, "_v", "_u")) return &kSpectralNorm;
  return is_of_pair(name, names, "_g", "_v") ? &kWeightNorm : nullptr;
}

NameSet names_of(const std::vector<NamedShape>& tensors) {
  NameSet names;
  for (const NamedShape& tensor : tensors) names.insert(tensor.name);
  return names;
}

using NameParts = std::vector<std::string>;

// Tensors whose names differ in their indices alone: "blocks.#.norm1.weight".
struct Group {
  std::string name;
  Shape shape;                    // that of the first tensor
  std::set<NameParts> indices{};  // those of each tensor
  bool used = false;
};

std::vector<Group> groups_of(const std::vector<NamedShape>& tensors) {
  std::vector<Group> groups;
  std::map<std::string, size_t> at;
  for (const NamedShape& tensor : tensors) {
    if (tensor.name.size() > kMaxLayerName) continue;
    NameParts words = split(tensor.name, "."), indices;
    for (std::string& word : words) {
      if (!is_number(word)) continue;
      indices.push_back(word);
      word = "#";
    }
    const auto [found, added] = at.emplace(join(words, "."), groups.size());
    if (added && groups.size() == kMaxKeyGroups) break;
    if (added) groups.push_back({found->first, tensor.shape});
    groups[found->second].indices.insert(std::move(indices));
  }
  return groups;
}

// "weight", "bias" or "": tensors of these names correspond to each other only.
std::string kind_of(const std::string& name) {
  for (const char* kind : {"weight", "bias"}) {
    if (name.ends_with(kind)) return kind;
  }
  return "";
}

// Whether a rule for the given names gives the native ones: the same indices, or one tensor for a name without any.
bool have_same_indices(const Group& native, const Group& given) {
  const bool numbered = native.name.find('#') != std::string::npos;
  return numbered ? native.indices == given.indices : given.indices.size() == 1;
}

// "pos" and "positional" are alike.
bool are_alike(const std::string& a, const std::string& b) {
  if (a == b) return !a.empty();
  return std::min(a.size(), b.size()) >= 3 && (a.starts_with(b) || b.starts_with(a));
}

// Equal shapes alone say nothing: the names have a word in common, or differ in few characters.
bool have_similar_names(const std::string& a, const std::string& b) {
  const NameParts first = split(a, "._"), second = split(b, "._");
  const bool shared = std::ranges::any_of(first, [&](const std::string& word) {
    return std::ranges::any_of(second, [&](const std::string& other) { return are_alike(word, other); });
  });
  return shared || edit_distance(a, b) <= std::max(a.size(), b.size()) / 3;
}

bool may_correspond(const Group& native, const Group& given) {
  const std::string a = kind_of(native.name), b = kind_of(given.name);
  return !given.used && native.shape == given.shape && (a.empty() || b.empty() || a == b) &&
         have_same_indices(native, given) && have_similar_names(native.name, given.name);
}

// Higher for names with more words in common.
int64_t similarity(const std::string& a, const std::string& b) {
  const std::vector<std::string> first = split(a, "._"), second = split(b, "._");
  const std::set<std::string> words(first.begin(), first.end());
  int64_t shared = 0;
  for (const std::string& word : second) shared += words.contains(word) ? 1 : 0;
  return 100 * shared - static_cast<int64_t>(edit_distance(a, b));
}

Group* nearest(const Group& native, std::vector<Group>& given) {
  Group* best = nullptr;
  for (Group& group : given) {
    if (!may_correspond(native, group)) continue;
    if (!best || similarity(native.name, group.name) > similarity(native.name, best->name)) best = &group;
  }
  return best;
}

Group* find(std::vector<Group>& groups, const std::string& name) {
  const auto found = std::ranges::find_if(groups, [&](const Group& g) { return !g.used && g.name == name; });
  return found == groups.end() ? nullptr : &*found;
}

// The groups of q, k and v that make up a fused parameter.
std::optional<std::array<Group*, 3>> parts_of(const Group& native, std::vector<Group>& given) {
  static const std::array<std::array<std::string, 3>, 3> kWords{
      {{"q", "k", "v"}, {"query", "key", "value"}, {"q_proj", "k_proj", "v_proj"}}};
  if (native.shape.rank() == 0 || native.shape[0] % 3 != 0) return std::nullopt;
  Group part{native.name, native.shape, native.indices};
  part.shape[0] /= 3;
  for (Group& query : given) {
    if (!may_correspond(part, query)) continue;
    for (const auto& words : kWords) {
      std::vector<std::string> name = split(query.name, ".");
      const auto word = std::ranges::find(name, words[0]);
      if (word == name.end()) continue;
      *word = words[1];
      Group* const key = find(given, join(name, "."));
      *word = words[2];
      Group* const value = find(given, join(name, "."));
      const bool all = key && value && may_correspond(part, *key) && may_correspond(part, *value);
      if (all) return std::array<Group*, 3>{&query, key, value};
    }
  }
  return std::nullopt;
}

struct Rule {
  std::string from, to;  // with "#" for indices
  int64_t part = 0, parts = 1;
};

// A rule for weight and one for bias that are alike become one.
std::string stem_of(const std::string& name, const std::string& kind) {
  return name.substr(0, name.size() - kind.size());
}

bool is_bias_of(const Rule& bias, const Rule& weight) {
  return kind_of(weight.from) == "weight" && kind_of(bias.from) == "bias" && bias.part == weight.part &&
         bias.parts == weight.parts && stem_of(weight.from, "weight") == stem_of(bias.from, "bias") &&
         stem_of(weight.to, "weight") == stem_of(bias.to, "bias");
}

// The regular expression of the names, and what it becomes.
std::string expression_of(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c == '#') {
      text += "(\\d+)";
      continue;
    }
    if (std::string_view(".[](){}*+?^$|\\/").find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
  return text;
}

std::string json_of(const Rule& rule, bool with_bias) {
  std::string from = expression_of(rule.from), to;
  int number = 0;
  for (const char c : rule.to) to += c == '#' ? "$" + std::to_string(++number) : std::string(1, c);
  if (with_bias) {
    from = stem_of(from, "weight") + "(weight|bias)";
    to = stem_of(to, "weight") + "$" + std::to_string(std::ranges::count(rule.from, '#') + 1);  // the last group
  }
  nlohmann::ordered_json json{{"from", from}};
  rule.to.empty() ? json["drop"] = true : json["to"] = to;
  if (rule.parts > 1) json["part"] = {rule.part, rule.parts};
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::vector<Rule> rules_for(const std::vector<Group>& natives, std::vector<Group>& given) {
  std::vector<Rule> rules;
  for (const Group& native : natives) {
    if (Group* const group = nearest(native, given)) {
      group->used = true;
      if (group->name != native.name) rules.push_back({group->name, native.name});
    } else if (const auto parts = parts_of(native, given)) {
      for (int64_t part = 0; part < 3; ++part) {
        (*parts)[static_cast<size_t>(part)]->used = true;
        rules.push_back({(*parts)[static_cast<size_t>(part)]->name, native.name, part, 3});
      }
    }
  }
  return rules;
}

// Whether a tensor is of a layer of the encoder.  The model would give other results without it.
bool is_of_layer(const std::string& name) {
  const NameParts words = split(name, ".");
  if (words.front().starts_with("decoder")) return false;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if ((word == "blocks" || word == "layers" || word == "layer") && is_number(words[i + 1])) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> advise_merging(const std::vector<NamedShape>& missing, const std::vector<NamedShape>& extra) {
  const NameSet names = names_of(extra);
  std::vector<std::string> lines;
  std::set<const SplitWeights*> seen;
  for (const NamedShape& tensor : extra) {
    const SplitWeights* const kind = split_weights_of(tensor.name, names);
    // A head in parts that no parameter needs may be dropped, unlike LoRA's updates.
    if (!kind || (missing.empty() && kind != &kLora) || !seen.insert(kind).second) continue;
    lines.push_back(str(tensor.name.substr(0, kMaxLayerName), ": ", kind->name, " weights; ", kind->advice));
  }
  return lines;
}

std::vector<std::string> propose_rules(const std::vector<NamedShape>& missing, const std::vector<NamedShape>& extra) {
  if (!advise_merging(missing, extra).empty()) return {};
  // A tensor with the name of a parameter is this parameter.
  const NameSet wanted_names = names_of(missing), given_names = names_of(extra);
  std::vector<NamedShape> wanted = missing, others = extra;
  std::erase_if(wanted, [&](const NamedShape& t) { return given_names.contains(t.name); });
  std::erase_if(others, [&](const NamedShape& t) { return wanted_names.contains(t.name) || is_parameter(t.name); });
  std::vector<Group> given = groups_of(others);
  std::vector<Rule> rules = rules_for(groups_of(wanted), given);
  if (missing.empty()) {
    std::erase_if(others, [](const NamedShape& tensor) { return is_of_layer(tensor.name); });
    for (const Group& group : groups_of(others)) rules.push_back({group.name, ""});
  }
  std::vector<std::string> texts;
  for (size_t i = 0; i < rules.size() && texts.size() < kMaxRules; ++i) {
    const auto is_pair = [&](const Rule& other) { return is_bias_of(other, rules[i]); };
    const bool covered = std::ranges::any_of(rules, [&](const Rule& other) { return is_bias_of(rules[i], other); });
    if (!covered) texts.push_back(json_of(rules[i], std::ranges::any_of(rules, is_pair)));
  }
  return texts;
}

}  // namespace vitrail::weights
