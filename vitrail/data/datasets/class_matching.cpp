// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/class_matching_internal.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/unicode_names_internal.h"

namespace vitrail::data {
namespace {

constexpr size_t kMaxListed = 20;  // names that a message lists; it counts the others

using Table = std::map<std::string, std::vector<int64_t>>;  // name in the table's form → the classes it fits

void add(Table& table, const std::string& name, int64_t index) {
  std::vector<int64_t>& classes = table[name];
  if (classes.empty() || classes.back() != index) classes.push_back(index);
}

// The digits of an integer without leading zeros; empty for other names.
std::string digits_of(const std::string& name) {
  if (name.empty() || name.find_first_not_of("0123456789") != name.npos) return "";
  return name.substr(std::min(name.find_first_not_of('0'), name.size() - 1));
}

bool are_numbers(const std::vector<std::string>& names) {
  return !names.empty() &&
         std::none_of(names.begin(), names.end(), [](const std::string& name) { return digits_of(name).empty(); });
}

// The lookup tables in order of precedence: exact labels, WordNet ids, complete labels, synonyms, and where all labels
// are numbers, these by value.
std::vector<Table> make_tables(const std::vector<std::string>& labels, const std::vector<std::string>& wordnet_ids) {
  std::vector<Table> tables(5);
  const bool by_value = are_numbers(labels);
  for (size_t i = 0; i < wordnet_ids.size(); ++i)
    add(tables[1], comparison_key(wordnet_ids[i]), static_cast<int64_t>(i));
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::string_view label = labels[i];
    add(tables[0], composed(label), static_cast<int64_t>(i));
    add(tables[2], comparison_key(label), static_cast<int64_t>(i));
    if (by_value) add(tables[4], digits_of(labels[i]), static_cast<int64_t>(i));
    for (size_t begin = 0; begin <= label.size();) {
      const size_t end = std::min(label.find(',', begin), label.size());
      add(tables[3], comparison_key(label.substr(begin, end - begin)), static_cast<int64_t>(i));
      begin = end + 1;
    }
  }
  return tables;
}

const std::vector<int64_t>& classes_named(const std::vector<Table>& tables, const std::string& name) {
  static const std::vector<int64_t> none;
  const std::string exact = composed(name), key = comparison_key(name), digits = digits_of(name);
  for (size_t i = 0; i < tables.size(); ++i) {
    const auto found = tables[i].find(i == 0 ? exact : i == 4 ? digits : key);
    if (found != tables[i].end()) return found->second;
  }
  return none;
}

// The class index that a name is; none if it is no integer from 0 to limit − 1.
std::optional<int64_t> index_in(const std::string& name, int64_t limit) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  const bool is_number = error == std::errc() && end == name.data() + name.size() && name.front() != '-';
  return is_number && value < limit ? std::optional(value) : std::nullopt;
}

// Folders "1" and "01" are the same number.
void require_distinct(const std::string& where, const std::vector<std::string>& names,
                      const std::vector<int64_t>& indices) {
  std::map<int64_t, std::string> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto [other, is_new] = seen.emplace(indices[i], names[i]);
    if (!is_new) throw Error(where, "one folder per class index", quoted_list({other->second, names[i]}));
  }
}

ClassMatch match_indices(const std::string& where, const std::vector<std::string>& names, int64_t num_classes) {
  ClassMatch match;
  for (const std::string& name : names) {
    const std::optional<int64_t> index = num_classes < INT64_MAX ? index_in(name, num_classes) : std::nullopt;
    if (!index) return {};
    match.indices.push_back(*index);
  }
  require_distinct(where, names, match.indices);
  match.rule = ClassMatch::Rule::indices;
  return match;
}

}  // namespace

std::string quoted_list(const std::vector<std::string>& names) {
  return join_first(kMaxListed, names, ", ", [](const std::string& name) { return "'" + name + "'"; });
}

ClassMatch match_classes(const std::string& where, const std::vector<std::string>& names,
                         const std::vector<std::string>& labels, const std::vector<std::string>& wordnet_ids,
                         int64_t num_classes) {
  const std::vector<Table> tables = make_tables(labels, wordnet_ids);
  ClassMatch match{.rule = ClassMatch::Rule::labels, .indices = {}};
  std::vector<std::string> problems;
  size_t unknown = 0;
  for (const std::string& name : names) {
    const std::vector<int64_t>& classes = classes_named(tables, name);
    match.indices.push_back(classes.empty() ? -1 : classes.front());
    unknown += classes.empty();
    if (classes.empty()) problems.push_back("'" + name + "'");
    if (classes.size() > 1) problems.push_back(str("'", name, "' (fits ", classes[0], " and ", classes[1], ")"));
  }
  // Where labels are numbers, a number that is none of them is no index.
  const bool by_value = are_numbers(labels) && are_numbers(names);
  if (unknown == names.size() && !by_value) return match_indices(where, names, num_classes);
  if (!problems.empty()) {
    throw Error(where,
                by_value ? "class names that are labels of the model: " + quoted_list(labels)
                         : "class names that are labels or WordNet ids of the model",
                str(problems.size(), " of ", names.size(), " that are not: ", join_first(kMaxListed, problems)));
  }
  if (by_value) require_distinct(where, names, match.indices);
  return match;
}

bool names_a_class(const std::string& name, const std::vector<std::string>& labels,
                   const std::vector<std::string>& wordnet_ids, int64_t num_classes) {
  if (!classes_named(make_tables(labels, wordnet_ids), name).empty()) return true;
  return !are_numbers(labels) && num_classes < INT64_MAX && index_in(name, num_classes);
}

}  // namespace vitrail::data
