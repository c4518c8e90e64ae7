// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/near_names_internal.h"

#include <algorithm>

namespace vitrail::models {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

}  // namespace

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
    const size_t distance = edit_distance(lower(name), lower(candidate));
    if (distance <= limit && distance < candidate.size()) ranked.emplace_back(distance, candidate);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min<size_t>(ranked.size(), 3); ++i) names.push_back(ranked[i].second);
  return names;
}

}  // namespace vitrail::models
