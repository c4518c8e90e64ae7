// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/splits_internal.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"

namespace vitrail::data {
namespace {

struct Synonym {
  std::string_view name, canonical;
};
constexpr std::array<Synonym, 15> kSynonyms{{{"train", "train"},
                                             {"training", "train"},
                                             {"trn", "train"},
                                             {"val", "val"},
                                             {"valid", "val"},
                                             {"validate", "val"},
                                             {"validation", "val"},
                                             {"dev", "val"},
                                             {"development", "val"},
                                             {"eval", "val"},
                                             {"evaluation", "val"},
                                             {"holdout", "val"},
                                             {"test", "test"},
                                             {"testing", "test"},
                                             {"tst", "test"}}};
constexpr std::array<std::string_view, 8> kEndings{"dataset", "set", "data",  "images",
                                                   "imgs",    "img", "split", "folder"};

std::string lower_letters(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '-' || c == '_' || c == ' ') continue;
    text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

std::string_view split_named(std::string_view name) {
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.name == name) return synonym.canonical;
  }
  return {};
}

bool is_same_split(std::string_view a, std::string_view b) {
  return !canonical_split(a).empty() && canonical_split(a) == canonical_split(b);
}

}  // namespace

std::string_view canonical_split(std::string_view name) {
  const std::string letters = lower_letters(name);
  const std::string_view text = letters;
  if (const std::string_view found = split_named(text); !found.empty()) return found;
  for (const std::string_view ending : kEndings) {
    if (!text.ends_with(ending)) continue;
    if (const auto found = split_named(text.substr(0, text.size() - ending.size())); !found.empty()) return found;
  }
  return {};
}

std::string_view resembled_split(std::string_view name) {
  constexpr std::string_view kFold = "fold";
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  for (size_t begin = 0, end = 0; begin < name.size(); begin = std::max(end, begin + 1)) {
    end = begin;
    while (end < name.size() && (is_small(name[end]) || is_capital(name[end])) &&
           (end == begin || !is_capital(name[end]) || !is_small(name[end - 1])))
      ++end;
    const std::string_view word = name.substr(begin, end - begin);
    if (const auto found = canonical_split(word); !found.empty()) return found;
    if (lower_letters(word) == kFold) return kFold;
  }
  return {};
}

std::string choose_split(const Splits& splits, const DatasetOptions& options) {
  const std::vector<std::string>& existing = splits.existing;
  const bool is_named = !options.split.empty();
  if (is_named && std::ranges::find(existing, options.split) != existing.end()) return options.split;
  if (existing.empty() && splits.unusable.empty() && (!is_named || options.split == kNoSplit)) return "";
  const std::vector<std::string> wanted = is_named ? std::vector{options.split} : options.default_splits;
  for (const std::string& name : wanted) {
    for (const auto& [unusable, content] : splits.unusable) {
      if (unusable == name || is_same_split(unusable, name))
        throw Error(splits.where, "images that can be read in the split " + unusable, content);
    }
    std::vector<std::string> found;
    std::ranges::copy_if(existing, std::back_inserter(found), [&](auto& split) { return is_same_split(split, name); });
    if (found.size() > 1) throw Error(splits.where, "one split " + name + " (or its exact name)", join(found));
    if (!found.empty()) return found.front();
  }
  throw Error(splits.where,
              "a split " + join(wanted, " or ") +
                  (is_named ? "" : ", or another by --split NAME (train: --set data.train_split=NAME)"),
              existing.empty() ? "a dataset without splits" : "these splits: " + join(existing));
}

}  // namespace vitrail::data
