// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/model_prefixes_internal.h"

#include <algorithm>
#include <span>
#include <unordered_set>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/weights/family_keys_internal.h"

namespace vitrail::weights {
namespace {

constexpr size_t kMaxPrefixes = 1000;  // limits the time that hostile files take

// What is before `key` in `name`, if the name ends with the key after a separator.
bool prefix_before(const std::string& name, const std::string& key, std::string& prefix) {
  if (!name.ends_with(key)) return false;
  prefix = name.substr(0, name.size() - key.size());
  return prefix.empty() || prefix.back() == '.' || prefix.back() == '/';
}

void add_prefixes(const FamilyKeys& family, const std::vector<std::string>& names,
                  const std::unordered_set<std::string>& present, std::vector<std::string>& prefixes) {
  for (const std::string& key : family.detect.front()) {
    for (const std::string& name : names) {
      std::string prefix;
      if (prefixes.size() >= kMaxPrefixes) return;
      if (!prefix_before(name, key, prefix) || is_optimizer_state(prefix)) continue;
      if (recognises(family, present, prefix)) prefixes.push_back(prefix);
    }
  }
}

using Words = std::initializer_list<std::string_view>;

// Whether one of the parts of a key between the separators is in the list.
bool has_part(std::string_view key, const char* separators, Words parts) {
  while (!key.empty()) {
    const size_t end = std::min(key.find_first_of(separators), key.size());
    if (std::ranges::find(parts, key.substr(0, end)) != parts.end()) return true;
    key.remove_prefix(std::min(end + 1, key.size()));
  }
  return false;
}

bool has_word(std::string_view key, Words words) { return has_part(key, "._/", words); }

bool has_name(std::string_view key, Words names) { return has_part(key, "./", names); }

int role_order(std::string_view key) {
  if (has_word(key, {"ema", "swa", "averaged", "average", "avg", "target"})) return 0;
  if (has_word(key, {"teacher", "momentum"})) return 3;
  if (has_word(key, {"student", "online"})) return 4;
  return has_name(key, {"model", "state_dict", "model_state_dict", "params", "weights"}) ? 1 : 2;
}

}  // namespace

bool is_optimizer_state(std::string_view key) {
  if (has_name(key, {"target"})) return false;  // flax.optim has the weights in "opt/target/"
  if (has_word(key, {"opt", "optim", "optims", "optimizer", "optimizers", "optimiser", "optimisers"})) return true;
  if (has_word(key, {"grad", "grads", "gradient", "gradients", "mu", "nu"})) return true;
  if (has_name(key, {"momentum", "momenta", "momentum_buffer", "momentum_buffers"})) return true;
  return has_word(key, {"avg", "average"}) && has_word(key, {"exp", "sq", "square"});  // "exp_avg_sq", "square_avg"
}

bool is_average(std::string_view key) { return role_order(key) == 0; }

bool is_zero_count(const std::function<Tensor()>& read) {
  try {
    const Tensor count = read();
    return count.dtype() == DType::i64 && count.numel() == 1 && count.item<int64_t>() == 0;
  } catch (const Error&) {
    return false;
  }
}

std::string empty_averages_text(const std::vector<std::string>& averages) {
  if (averages.empty()) return "";
  return str("; the average under ", quoted_list(averages), " has not begun (", kAveragedCount, " is 0)");
}

int use_order(std::string_view key) {
  const bool earlier = has_word(key, {"last", "latest", "previous", "initial", "init", "pretrained"});
  return 2 * role_order(key) + (earlier ? 1 : 0);
}

std::vector<std::string> find_model_prefixes(const std::vector<std::string>& names) {
  const std::unordered_set<std::string> present(names.begin(), names.end());
  std::vector<std::string> all, result;
  for (const FamilyKeys& family : builtin_family_keys()) add_prefixes(family, names, present, all);
  for (const std::string& prefix : all) {
    const bool inside = std::ranges::any_of(all, [&](const std::string& other) {
      return other.size() < prefix.size() && prefix.starts_with(other);  // "model." of "model.vit."
    });
    if (!inside && std::find(result.begin(), result.end(), prefix) == result.end()) result.push_back(prefix);
  }
  const auto first_use = [&](const std::string& prefix) {
    return std::ranges::find_if(names, [&](const std::string& name) { return name.starts_with(prefix); });
  };
  std::ranges::sort(result, {}, [&](const std::string& prefix) {
    return std::pair(use_order(prefix), first_use(prefix) - names.begin());
  });
  return result;
}

std::string quoted_list(const std::vector<std::string>& words, size_t max_count) {
  const std::span listed = std::span(words).first(std::min(words.size(), max_count));
  const std::string text = join(listed, ", ", [](const std::string& word) { return "\"" + word.substr(0, 80) + "\""; });
  return words.size() > max_count ? text + ", …" : text;
}

}  // namespace vitrail::weights
