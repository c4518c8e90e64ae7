// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/near_names_internal.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace vitrail {
namespace {

std::set<std::string> words_of(const std::string& name) {
  std::set<std::string> words;
  std::istringstream text(name);
  for (std::string word; std::getline(text, word, '_');) words.insert(word);
  return words;
}

}  // namespace

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

size_t shared_words(const std::string& a, const std::string& b) {
  const std::set<std::string> words = words_of(a);
  size_t shared = 0;
  for (const std::string& word : words_of(b)) shared += words.contains(word) ? 1 : 0;
  return shared;
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t up = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = up;
    }
  }
  return row[b.size()];
}

std::vector<std::string> near_names(const std::string& name, const std::vector<std::string>& candidates) {
  if (name.size() > 200) return {};  // no name: the time is proportional to both lengths
  const size_t limit = std::max<size_t>(2, name.size() / 5);
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(lower_case(name), lower_case(candidate));
    if (distance <= limit && distance < candidate.size()) ranked.emplace_back(distance, candidate);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min<size_t>(ranked.size(), 3); ++i) names.push_back(ranked[i].second);
  return names;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates) {
  const std::vector<std::string> near = near_names(name, candidates);
  return near.empty() ? "" : "; did you mean " + near.front() + "?";
}

}  // namespace vitrail
