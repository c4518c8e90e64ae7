// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/csv_layout_internal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "vitrail/data/csv_internal.h"
#include "vitrail/data/unicode_names_internal.h"
#include "vitrail/image/decode.h"

namespace vitrail::data {
namespace {

using Fields = std::vector<std::string>;

// The first field of a header is no image path and the second no number.  If only one of these holds, the row is data
// and its error is reported.
bool is_header(const Fields& fields) {
  return fields.size() >= 2 && !image::is_image_path(fields[0]) && !csv_number(fields[1]);
}

// The first column with one of these names, in any case.
std::optional<size_t> find_column(const Fields& header, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (size_t i = 0; i < header.size(); ++i) {
      if (comparison_key(header[i]) == name) return i;
    }
  }
  return std::nullopt;
}

std::optional<size_t> file_column(const Fields& header) {
  return find_column(header, {"file", "filename", "file name", "filepath", "file path", "path", "image", "image path",
                              "image id", "image index", "image name"});
}

std::optional<size_t> label_column(const Fields& header) {
  return find_column(header, {"class index", "class id", "label", "class", "class name", "target", "category"});
}

std::optional<size_t> labels_column(const Fields& header) {
  return find_column(header, {"labels", "tags", "classes", "class names", "categories", "finding labels"});
}

std::optional<size_t> split_column(const Fields& header) {
  return find_column(header, {"split", "subset", "partition", "set", "dataset", "phase"});
}

// Columns that are not of classes although they may have 0 and 1.
bool is_other_column(const std::string& name) {
  static const std::set<std::string> kNames{"",     "id",        "index", "split",   "subset",
                                            "fold", "partition", "set",   "dataset", "phase"};
  return kNames.contains(comparison_key(name));
}

// The columns of 0 and 1, if all columns but the file's are such in the first row of data.
void find_indicators(const Fields& header, const Fields& row, bool multi_label, CsvLayout& layout) {
  const size_t min_columns = multi_label ? 1 : 2;  // a single one may have the class indices 0 and 1
  std::vector<size_t> columns;
  for (size_t i = 0; i < header.size(); ++i) {
    if (i == layout.file || is_other_column(header[i])) continue;
    if (i >= row.size() || !csv_indicator(row[i])) return;
    columns.push_back(i);
  }
  if (columns.size() < min_columns) return;
  for (const size_t i : columns) layout.classes.push_back(header[i]);
  layout.indicators = std::move(columns);
}

// The first of the separators that a field of the column has.
char find_separator(CsvReader& reader, size_t column, const std::string& separators) {
  size_t best = separators.size();
  while (const auto row = reader.next()) {
    if (column >= row->fields.size()) continue;
    for (size_t i = 0; i < best; ++i) {
      if (row->fields[column].find(separators[i]) != std::string::npos) best = i;
    }
  }
  return best < separators.size() ? separators[best] : '\0';
}

}  // namespace

std::optional<double> csv_number(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == text.npos) return std::nullopt;
  std::string digits(text.substr(first, text.find_last_not_of(' ') + 1 - first));
  const size_t comma = digits.find(',');
  if (comma != digits.npos) digits[comma] = '.';
  if (digits.front() == '+') digits.erase(0, 1);
  if (digits.find_first_not_of("0123456789.eE+-") != digits.npos) return std::nullopt;  // "inf" and "nan" are names
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) return std::nullopt;
  return error == std::errc() ? value : HUGE_VAL;
}

std::optional<int64_t> csv_integer(std::string_view text) {
  constexpr double kMax = int64_t{1} << 53;  // above, a double does not tell integers apart
  const std::optional<double> number = csv_number(text);
  if (!number || !(std::abs(*number) <= kMax) || *number != std::floor(*number)) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<bool> csv_indicator(const std::string& text) {
  const std::string key = comparison_key(text);
  if (key == "false") return false;
  if (key == "true") return true;
  const std::optional<int64_t> value = csv_integer(text);
  return value == 0 || value == 1 ? std::optional(*value == 1) : std::nullopt;
}

CsvLayout csv_layout(const std::string& where, std::string_view text, std::optional<bool> multi_label) {
  CsvLayout layout;
  std::string separators = "|";
  CsvReader reader(where, text);
  const auto first = reader.next();
  if (!first) return layout;
  layout.has_header = is_header(first->fields);
  if (layout.has_header) {
    const Fields& header = first->fields;
    layout.split = split_column(header);
    const auto file = file_column(header), label = label_column(header), labels = labels_column(header);
    if (file && (label || labels)) {
      layout.file = *file, layout.label = label ? *label : *labels;
      if (!label && multi_label != false) separators += ";,";  // a name may have a comma
    } else {
      layout.file = file.value_or(0);
      if (const auto second = reader.next()) {
        find_indicators(header, second->fields, multi_label.value_or(false), layout);
        if (!layout.indicators.empty()) return layout;
      }
      layout.file = 0;
    }
  }
  CsvReader rows(where, text);
  if (layout.has_header) rows.next();
  layout.separator = find_separator(rows, layout.label, separators);
  if (multi_label == true && layout.separator == '\0') layout.separator = '|';
  return layout;
}

}  // namespace vitrail::data
