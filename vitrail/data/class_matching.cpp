// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/class_matching_internal.h"

#include <map>
#include <string_view>

#include "vitrail/base/error.h"

namespace vitrail::data {
namespace {

constexpr size_t kMaxListed = 20;  // names that a message lists; it counts the others

std::string normalized(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    text += c == '_' ? ' ' : upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  const size_t first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

using Table = std::map<std::string, std::vector<int64_t>>;  // normalized name → the classes it fits

void add(Table& table, std::string_view name, int64_t index) {
  std::vector<int64_t>& classes = table[normalized(name)];
  if (classes.empty() || classes.back() != index) classes.push_back(index);
}

// The three lookup tables in order of precedence: WordNet ids, complete labels, synonyms.
std::vector<Table> make_tables(const std::vector<std::string>& labels, const std::vector<std::string>& wordnet_ids) {
  std::vector<Table> tables(3);
  for (size_t i = 0; i < wordnet_ids.size(); ++i) add(tables[0], wordnet_ids[i], static_cast<int64_t>(i));
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::string_view label = labels[i];
    add(tables[1], label, static_cast<int64_t>(i));
    for (size_t begin = 0; begin <= label.size();) {
      const size_t end = std::min(label.find(',', begin), label.size());
      add(tables[2], label.substr(begin, end - begin), static_cast<int64_t>(i));
      begin = end + 1;
    }
  }
  return tables;
}

const std::vector<int64_t>& look_up(const std::vector<Table>& tables, const std::string& name) {
  static const std::vector<int64_t> none;
  const std::string key = normalized(name);
  for (const Table& table : tables) {
    const auto found = table.find(key);
    if (found != table.end()) return found->second;
  }
  return none;
}

std::string joined(const std::vector<std::string>& problems) {
  std::string text;
  for (size_t i = 0; i < std::min(problems.size(), kMaxListed); ++i) text += (i == 0 ? "" : ", ") + problems[i];
  if (problems.size() > kMaxListed) text += str(" and ", problems.size() - kMaxListed, " more");
  return text;
}

}  // namespace

ClassMatch match_classes(const std::string& where, const std::vector<std::string>& names,
                         const std::vector<std::string>& labels, const std::vector<std::string>& wordnet_ids) {
  const std::vector<Table> tables = make_tables(labels, wordnet_ids);
  ClassMatch match;
  std::vector<std::string> problems;
  size_t unknown = 0;
  for (const std::string& name : names) {
    const std::vector<int64_t>& classes = look_up(tables, name);
    match.indices.push_back(classes.empty() ? -1 : classes.front());
    unknown += classes.empty();
    if (classes.empty()) problems.push_back("'" + name + "'");
    if (classes.size() > 1) problems.push_back(str("'", name, "' (fits ", classes[0], " and ", classes[1], ")"));
  }
  if (unknown == names.size()) {
    for (size_t i = 0; i < names.size(); ++i) match.indices[i] = static_cast<int64_t>(i);
    return match;
  }
  if (!problems.empty()) {
    throw Error(where, "class folders that are named after labels or WordNet ids of the model",
                str(problems.size(), " of ", names.size(), " that are not: ", joined(problems)));
  }
  match.matched = true;
  return match;
}

}  // namespace vitrail::data
