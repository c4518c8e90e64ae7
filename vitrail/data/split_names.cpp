// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/split_names_internal.h"

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

}  // namespace vitrail::data
