// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/split_names_internal.h"

#include <algorithm>
#include <array>
#include <string>

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

std::string_view look_up(std::string_view name) {
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.name == name) return synonym.canonical;
  }
  return {};
}

}  // namespace

std::string_view canonical_split(std::string_view name) {
  const std::string letters = lower_letters(name);
  const std::string_view text = letters;
  if (const std::string_view found = look_up(text); !found.empty()) return found;
  for (const std::string_view ending : kEndings) {
    if (!text.ends_with(ending)) continue;
    if (const auto found = look_up(text.substr(0, text.size() - ending.size())); !found.empty()) return found;
  }
  return {};
}

std::string_view resembled_split(std::string_view name) {
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  for (size_t begin = 0, end = 0; begin < name.size(); begin = std::max(end, begin + 1)) {
    end = begin;
    while (end < name.size() && (is_small(name[end]) || is_capital(name[end])) &&
           (end == begin || !is_capital(name[end]) || !is_small(name[end - 1])))
      ++end;
    if (const auto found = canonical_split(name.substr(begin, end - begin)); !found.empty()) return found;
  }
  return {};
}

bool is_fold_name(std::string_view name) {
  constexpr std::string_view kWord = "fold";
  const std::string letters = lower_letters(name);
  return letters.starts_with(kWord) && letters.size() > kWord.size() &&
         letters.find_first_not_of("0123456789", kWord.size()) == letters.npos;
}

}  // namespace vitrail::data
