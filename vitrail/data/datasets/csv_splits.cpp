// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/csv_splits_internal.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "vitrail/base/error.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/split_names_internal.h"
#include "vitrail/data/datasets/unicode_names_internal.h"

namespace vitrail::data {
namespace {

constexpr size_t kMaxOtherValues = 3;  // a column with more does not look like splits

// What a column has that may say the splits.
struct SplitCandidate {
  size_t column = 0;
  std::string name{};
  bool is_named = false;          // it is called split, subset, …
  const CsvFlag* flag = nullptr;  // it is a flag by its name
  std::set<std::string> values{}, splits{}, others{};
  bool is_given_up = false;

  void add(const std::string& field) {
    if (is_given_up || !values.insert(field).second) return;
    const std::string_view split = canonical_split(field);
    if (!split.empty()) {
      splits.emplace(split);
      return;
    }
    others.insert(field);
    is_given_up = others.size() > kMaxOtherValues && !is_named && !(flag != nullptr && flag->is_certain);
  }

  bool has_names_alone() const { return !is_given_up && others.empty() && splits.size() > 1; }
  bool has_flags_alone() const {
    const auto is_flag = [](const std::string& value) { return csv_indicator(value).has_value(); };
    return !is_given_up && splits.empty() && std::ranges::all_of(others, is_flag);
  }
  bool names_splits() const { return is_named ? !splits.empty() : has_names_alone(); }

  bool looks_like_splits() const {
    if (is_given_up || is_named) return false;
    if (has_flags_alone()) return !resembled_split(name).empty();
    if (splits.size() > 1 || (splits.size() == 1 && others.empty())) return true;
    std::set<std::string_view> resembled;
    for (const std::string& value : values) resembled.insert(resembled_split(value));
    return resembled.size() > 1 && !resembled.contains("");
  }
};

std::string field_of(const CsvRow& row, size_t column) {
  return column < row.fields.size() ? row.fields[column] : std::string();
}

// The columns that are not those of files and classes.
std::vector<SplitCandidate> split_candidates(const CsvRow& first, const CsvLayout& layout) {
  std::vector<SplitCandidate> candidates;
  for (size_t i = 0; i < first.fields.size(); ++i) {
    const bool is_class = std::ranges::find(layout.indicators, i) != layout.indicators.end() ||
                          (layout.indicators.empty() && i == layout.label);
    if (i == layout.file || is_class || i == layout.names) continue;
    SplitCandidate candidate{.column = i, .name = layout.has_header ? first.fields[i] : std::to_string(i + 1)};
    candidate.is_named = layout.has_header && csv_split_rank(candidate.name).has_value();
    for (const CsvFlag& flag : layout.flags) {
      if (flag.column == i) candidate.flag = &flag;
    }
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

// Those that say splits come first, in the order of precedence.
std::vector<SplitCandidate> columns_of_splits(const std::vector<SplitCandidate>& candidates) {
  std::vector<SplitCandidate> columns;
  std::ranges::copy_if(candidates, std::back_inserter(columns), [](const auto& c) { return c.names_splits(); });
  std::ranges::stable_sort(columns, {},
                           [](const auto& c) { return c.is_named ? csv_split_rank(c.name).value_or(0) : SIZE_MAX; });
  return columns;
}

std::string quoted_fields(const CsvRow& row, const CsvSplits& splits) {
  if (splits.column) return "'" + field_of(row, *splits.column) + "'";
  std::vector<std::string> fields;
  for (const CsvFlag& flag : splits.flags) fields.push_back(field_of(row, flag.column));
  return quoted_list(fields);
}

// Whether the row says the same split in this column.
bool says_split(const SplitCandidate& column, const CsvRow& row, std::string_view split) {
  const std::string field = field_of(row, column.column);
  if (column.flag == nullptr || column.has_names_alone()) return canonical_split(field) == split;
  const std::optional<bool> value = csv_indicator(field);
  return !value || *value == (column.flag->split == split);
}

// Compares the first of the columns with the others.
void compare_columns(const std::string& row_where, const CsvRow& row, std::vector<SplitCandidate>& columns,
                     std::vector<std::string>& warnings) {
  const std::string_view split = canonical_split(field_of(row, columns.front().column));
  for (size_t i = 1; i < columns.size(); ++i) {
    const SplitCandidate &first = columns.front(), &other = columns[i];
    if (says_split(other, row, split)) continue;
    if (!first.is_named || other.is_named || other.flag != nullptr) {
      throw Error(
          row_where,
          str("the same split in the columns ", first.name, " and ", other.name, " (the split \".\" is all rows)"),
          quoted_list({field_of(row, first.column), field_of(row, other.column)}));
    }
    warnings.push_back(str("the column ", other.name, " is not used, because ", first.name, " says other splits"));
    columns.erase(columns.begin() + static_cast<ptrdiff_t>(i--));
  }
}

// Tells of columns that may have been meant.
void warn_of_unused(const std::vector<SplitCandidate>& candidates, std::vector<std::string>& warnings) {
  for (const SplitCandidate& candidate : candidates) {
    std::vector<std::string> others(candidate.others.begin(), candidate.others.end());
    std::erase(others, "");
    const bool is_bad_flag = candidate.flag != nullptr && candidate.flag->is_certain;
    if ((candidate.is_named || is_bad_flag) && !others.empty()) {
      warnings.push_back(str("the column ", candidate.name, " is not used, because its values are not ",
                             is_bad_flag ? "0 or 1" : "train, val or test", ": ", quoted_list(others)));
    } else if (candidate.looks_like_splits()) {
      warnings.push_back(str("the column ", candidate.name, " is not used, although it looks like one of splits: ",
                             quoted_list({candidate.values.begin(), candidate.values.end()}),
                             "; one called split with train, val and test is"));
    }
  }
}

}  // namespace

std::string_view CsvSplits::of(const CsvRow& row) const {
  if (column) return canonical_split(field_of(row, *column));
  std::string_view split;
  for (const CsvFlag& flag : flags) {
    const std::optional<bool> value = csv_indicator(field_of(row, flag.column));
    if (!value || (*value && !split.empty() && split != flag.split)) return {};
    if (*value) split = flag.split;
  }
  if (!split.empty()) return split;
  for (const std::string_view other : {"train", "test"}) {
    if (std::ranges::find(flags, other, &CsvFlag::split) == flags.end()) return other;
  }
  return {};
}

CsvSplits read_csv_splits(const std::string& where, std::string_view text, const CsvLayout& layout) {
  CsvSplits splits;
  CsvReader reader(where, text);
  const auto first = reader.next();
  if (!first) return splits;
  std::vector<SplitCandidate> candidates = split_candidates(*first, layout);
  if (!layout.has_header) reader = CsvReader(where, text);
  while (const auto row = reader.next()) {
    for (SplitCandidate& candidate : candidates) candidate.add(field_of(*row, candidate.column));
  }
  std::vector<SplitCandidate> columns = columns_of_splits(candidates);
  for (const SplitCandidate& candidate : candidates) {
    const bool is_flag = candidate.flag != nullptr && (candidate.flag->is_certain || candidate.has_flags_alone());
    if (!is_flag || candidate.has_names_alone()) continue;
    splits.flags.push_back(*candidate.flag);
    if (!columns.empty()) columns.push_back(candidate);
  }
  if (!columns.empty()) splits.column = columns.front().column;
  if (!splits.column && splits.flags.empty()) {
    warn_of_unused(candidates, splits.warnings);
    return splits;
  }
  std::optional<std::string> problem;  // the error of the first row without a split
  CsvReader rows(where, text);
  if (layout.has_header) rows.next();
  while (const auto row = rows.next()) {
    const std::string row_where = str(where, ":", row->line);
    const std::string_view split = splits.of(*row);
    if (split.empty() && !problem) {
      problem = str(row_where, ": expected the split train, val or test, as in other rows, got ",
                    quoted_fields(*row, splits), "; the split \".\" is all rows");
    }
    if (!split.empty()) splits.known.emplace(split);
    if (!split.empty() && splits.column) compare_columns(row_where, *row, columns, splits.warnings);
  }
  if (!splits.known.empty() && problem) throw Error(*problem);
  if (splits.known.empty()) warn_of_unused(candidates, splits.warnings);
  return splits;
}

}  // namespace vitrail::data
