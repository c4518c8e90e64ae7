// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/csv_labels_internal.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/csv_layout_internal.h"

namespace vitrail::data {
namespace {

using Values = std::set<std::string>;

constexpr std::string_view kBlanks = " \t\r\n";

bool is_bracketed(const std::string& value) {
  constexpr std::string_view kPairs[] = {"[]", "()", "{}"};
  return value.size() > 1 && std::ranges::any_of(kPairs, [&](std::string_view pair) {
           return value.front() == pair[0] && value.back() == pair[1];
         });
}

// Brackets around a plain name may be a part of it.
bool is_surely_list(const std::string& value) {
  if (!is_bracketed(value)) return value.starts_with("['") || value.starts_with("[\"");
  return value.size() == 2 || value.find_first_of("'\",") != value.npos || (value[1] >= '0' && value[1] <= '9');
}

bool are_lists(const CsvLabelColumn& column) {
  const auto list = std::ranges::find_if(column.values, is_surely_list);
  if (list == column.values.end()) return false;
  const auto other =
      std::ranges::find_if(column.values, [](const auto& value) { return !value.empty() && !is_bracketed(value); });
  if (other == column.values.end()) return true;
  if (!list->starts_with('[')) return false;
  throw Error(column.where, "lists of labels in all rows or in none", quoted_list({*list, *other}));
}

// The first of the separators that a value has.
char find_separator(const CsvLabelColumn& column) {
  for (const char separator : column.separators) {
    const auto has_it = [&](const std::string& value) { return value.find(separator) != value.npos; };
    if (std::ranges::any_of(column.values, has_it)) return separator;
  }
  return '\0';
}

bool all_integers(const std::vector<std::string>& parts) {
  return std::ranges::all_of(parts, [](const std::string& part) { return csv_integer(part).has_value(); });
}

// The values by their parts between blanks.
struct BlankParts {
  std::map<std::string, std::vector<std::string>> values{};  // without empty ones
  std::map<std::string, size_t> counts{};                    // the values that have a part
  std::set<size_t> sizes{};                                  // numbers of parts

  explicit BlankParts(const Values& all) {
    for (const std::string& value : all) {
      std::vector<std::string> parts = csv_label_parts(value, ' ');
      if (parts.empty()) continue;
      sizes.insert(parts.size());
      for (const std::string& part : Values(parts.begin(), parts.end())) ++counts[part];
      values.emplace(value, std::move(parts));
    }
  }
  bool all_numbers() const {
    return std::ranges::all_of(values, [](const auto& value) { return all_integers(value.second); });
  }
  bool recurs(const std::string& part) const { return values.contains(part) || counts.at(part) * 2 > values.size(); }
  bool recurs_once(const std::string& part) const { return counts.at(part) > 1; }
};

bool are_labels(const std::vector<std::string>& names, const std::vector<std::string>& labels) {
  return std::ranges::none_of(fitting_classes(names, labels, {}), [](const auto& classes) { return classes.empty(); });
}

// Whether blanks separate the labels, where a model or the values tell it.
bool blanks_separate(const CsvLabelColumn& column, const BlankParts& parts) {
  if (!column.labels.empty()) {
    std::vector<std::string> names;
    for (const auto& [part, count] : parts.counts) names.push_back(part);
    return are_labels(names, column.labels) || all_integers(names);
  }
  if (parts.all_numbers()) return true;
  if (parts.sizes.size() == 1) return false;
  return std::ranges::any_of(parts.values, [&](const auto& value) {
    const std::vector<std::string>& of_value = value.second;
    if (of_value.size() == 1) return false;
    return std::ranges::all_of(of_value, [&](const auto& part) { return parts.recurs(part); }) ||
           (column.is_of_fastai &&
            std::ranges::any_of(of_value, [&](const auto& part) { return parts.recurs_once(part); }));
  });
}

CsvLabelForm form_of_blanks(const CsvLabelColumn& column) {
  const auto has_blank = [](const std::string& value) { return value.find(' ') != value.npos; };
  if (std::ranges::none_of(column.values, has_blank)) return {};
  const BlankParts parts(column.values);
  const auto several = std::ranges::find_if(parts.values, [](const auto& value) { return value.second.size() > 1; });
  if (several == parts.values.end() || (!column.may_have_blanks && !parts.all_numbers())) return {};
  std::vector<std::string> whole;
  for (const auto& [value, of_value] : parts.values) whole.push_back(value);
  const bool has_model = !column.labels.empty();
  if (has_model && are_labels(whole, column.labels)) return {};
  const bool separate = column.may_have_blanks && blanks_separate(column, parts);
  if (has_model) return {.separator = separate ? ' ' : '\0'};
  if (separate) {
    return {.separator = ' ',
            .notice = str("the labels of the column ", column.name, " are separated by blanks, as in '", several->first,
                          "'; class names with blanks belong in a column called label")};
  }
  return {.notice = str("in the column ", column.name, " '", several->first,
                        "' is one class; several labels are written as \"", join(several->second, "|"), "\"")};
}

// The part up to the closing quote, without the backslashes of Python and JSON.
std::string take_quoted(std::string_view& text) {
  const char quote = text.front();
  std::string item;
  for (text.remove_prefix(1); !text.empty() && text.front() != quote; text.remove_prefix(1)) {
    if (text.front() == '\\' && text.size() > 1) text.remove_prefix(1);
    item += text.front();
  }
  text.remove_prefix(std::min<size_t>(1, text.size()));
  return item;
}

}  // namespace

CsvLabelForm csv_label_form(const CsvLabelColumn& column) {
  if (are_lists(column)) return {.separator = ',', .has_lists = true};
  if (const char separator = find_separator(column); separator != '\0') return {.separator = separator};
  return form_of_blanks(column);
}

std::vector<std::string> csv_label_parts(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0, end = 0; end != text.npos; begin = end + 1) {
    end = text.find(separator, begin);
    const std::string part = text.substr(begin, end == text.npos ? end : end - begin);
    const size_t first = part.find_first_not_of(' ');
    if (first != part.npos) parts.push_back(part.substr(first, part.find_last_not_of(' ') + 1 - first));
  }
  return parts;
}

std::vector<std::string> csv_list_items(const std::string& text) {
  std::vector<std::string> items;
  if (!is_bracketed(text)) return items;
  std::string_view remaining = std::string_view(text).substr(1, text.size() - 2);
  const std::string ends = remaining.find(',') == remaining.npos ? std::string(kBlanks) : ",";
  while (true) {
    const size_t first = remaining.find_first_not_of(std::string(kBlanks) + ",");
    if (first == remaining.npos) return items;
    remaining.remove_prefix(first);
    if (remaining.front() == '\'' || remaining.front() == '"') {
      items.push_back(take_quoted(remaining));
      continue;
    }
    const std::string_view item = remaining.substr(0, remaining.find_first_of(ends));
    items.emplace_back(item.substr(0, item.find_last_not_of(kBlanks) + 1));
    remaining.remove_prefix(item.size());
  }
}

}  // namespace vitrail::data
