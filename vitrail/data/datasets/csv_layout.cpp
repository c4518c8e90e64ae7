// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/csv_layout_internal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/content_internal.h"
#include "vitrail/data/datasets/csv_internal.h"
#include "vitrail/data/datasets/csv_labels_internal.h"
#include "vitrail/data/datasets/split_names_internal.h"
#include "vitrail/data/datasets/unicode_names_internal.h"
#include "vitrail/image/decode.h"

namespace vitrail::data {
namespace {

using Fields = std::vector<std::string>;

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
  return find_column(header, {"file", "filename", "file name", "fname", "filepath", "filepaths", "file path", "path",
                              "image", "image path", "image file", "image id", "image index", "image name", "img",
                              "img path", "img file", "img name", "img id"});
}

std::optional<size_t> label_column(const Fields& header) {
  return find_column(header, {"class index", "class id", "label", "class", "class name", "target", "category"});
}

std::optional<size_t> labels_column(const Fields& header) {
  return find_column(header, {"labels", "tags", "classes", "class names", "categories", "finding labels"});
}

// A column of names beside that of labels.
std::optional<size_t> names_column(const Fields& header, size_t label) {
  for (const char* name : {"class name", "label name", "category name", "label", "class", "category", "labels"}) {
    const std::optional<size_t> column = find_column(header, {name});
    if (column && *column != label) return column;
  }
  return std::nullopt;
}

// The split of a flag's name: is_valid, is_training_img, isTest, train; empty for other names.
std::string_view flag_split(const std::string& name, bool& is_certain) {
  std::string key = comparison_key(name);
  if (key.ends_with(" image")) key.resize(key.size() - std::string_view(" image").size());
  is_certain = key.starts_with("is");
  return canonical_split(is_certain ? std::string_view(key).substr(2) : key);
}

// A column "train" of 0 and 1 may be the class of trains.
std::vector<CsvFlag> find_flags(const Fields& header, bool has_labels) {
  std::vector<CsvFlag> flags;
  std::set<std::string_view> splits;
  for (size_t i = 0; i < header.size(); ++i) {
    CsvFlag flag{.column = i};
    flag.split = flag_split(header[i], flag.is_certain);
    if (flag.split.empty()) continue;
    flags.push_back(flag);
    splits.insert(flag.split);
  }
  if (splits.size() > 1) return flags;
  std::erase_if(flags, [&](const CsvFlag& flag) {
    return !flag.is_certain && (!has_labels || comparison_key(header[flag.column]) == "valid");
  });
  return flags;
}

// Columns that are not of classes although they may have 0 and 1.
bool is_other_column(const Fields& header, size_t column, const CsvLayout& layout) {
  static const std::set<std::string> kNames{"", "id", "index", "fold"};
  const auto is_this = [&](const CsvFlag& flag) { return flag.column == column; };
  return kNames.contains(comparison_key(header[column])) || csv_split_rank(header[column]) ||
         std::ranges::any_of(layout.flags, is_this);
}

bool has_slash(const std::string& path) { return path.find_first_of("/\\") != path.npos; }

// A header has no image path, and no number in the second column.  If only one of these holds, the row is data and its
// error is reported.  A file without extension is told from a name by a column that is known, or by its existence.
bool is_header(const Fields& fields, const std::optional<CsvRow>& second, const std::filesystem::path& folder) {
  if (fields.size() < 2 || csv_number(fields[1]) || std::ranges::any_of(fields, image::is_image_path)) return false;
  if (second && has_slash(fields[0]) && has_slash(second->fields[0])) return false;
  if (file_column(fields) || label_column(fields) || labels_column(fields)) return true;
  return data::file_size(folder / fields[0]) < 0;
}

// The only column with an image path in the first row of data.
std::optional<size_t> column_of_images(const Fields& row) {
  const auto found = std::ranges::find_if(row, image::is_image_path);
  if (found == row.end() || std::any_of(found + 1, row.end(), image::is_image_path)) return std::nullopt;
  return static_cast<size_t>(found - row.begin());
}

// Where names do not tell the columns of the file and the label, the other columns may be these.
void deduce_columns(const std::string& where, const Fields& header, std::optional<size_t> file,
                    std::optional<size_t> label, CsvLayout& layout) {
  std::vector<size_t> others;
  for (size_t i = 0; i < header.size(); ++i) {
    if (i != file && i != label && (header.size() == 2 || !is_other_column(header, i, layout))) others.push_back(i);
  }
  const size_t missing = (file ? 0 : 1) + (label ? 0 : 1);
  if (missing > 0 && others.size() != missing) {
    throw Error(where,
                file ? "a column of classes called label, class, class_name, class_index, target or category"
                     : "a column of images called file, path, image or filename, and one of classes called label",
                "these columns: " + quoted_list(header));
  }
  layout.file = file ? *file : others.front();
  layout.label = label ? *label : others.back();
}

// The columns of 0 and 1, if all columns but the file's are such in the first row of data.
void find_indicators(const Fields& header, const Fields& row, bool multi_label, CsvLayout& layout) {
  const size_t min_columns = multi_label ? 1 : 2;  // a single one may have the class indices 0 and 1
  std::vector<size_t> columns;
  for (size_t i = 0; i < header.size(); ++i) {
    if (i == layout.file || is_other_column(header, i, layout)) continue;
    if (i >= row.size() || !csv_indicator(row[i])) return;
    columns.push_back(i);
  }
  if (columns.size() < min_columns) return;
  for (const size_t i : columns) layout.classes.push_back(header[i]);
  layout.indicators = std::move(columns);
}

// A field without a name was split off another one, as by the comma in the unquoted label "crane, bird".
void require_named_fields(const std::string& where, const CsvRow& row, const Fields& first, bool has_header) {
  const size_t extra = row.fields.size() - std::min(row.fields.size(), first.size());
  if (std::all_of(row.fields.end() - static_cast<ptrdiff_t>(extra), row.fields.end(),
                  [](const std::string& field) { return field.empty(); }))
    return;
  throw Error(str(where, ":", row.line),
              str(counted(first.size(), "field"), ", as in the ", has_header ? "header" : "first row",
                  " (a field with the separator is written in quotes, several labels as \"cat|dog\")"),
              counted(row.fields.size(), "field"));
}

// The different values of the column.
std::set<std::string> values_of_column(CsvReader& reader, size_t column) {
  std::set<std::string> values;
  while (const auto row = reader.next()) {
    if (column < row->fields.size()) values.insert(row->fields[column]);
  }
  return values;
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

std::string csv_digits(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != ' ' && c != '+') digits += c == ',' ? '.' : c;
  }
  const size_t point = digits.find('.');
  if (point != digits.npos && digits.find_first_not_of('0', point + 1) == digits.npos) digits.resize(point);
  return digits;
}

std::optional<bool> csv_indicator(const std::string& text) {
  const std::string key = comparison_key(text);
  if (key == "false") return false;
  if (key == "true") return true;
  const std::optional<int64_t> value = csv_integer(text);
  return value == 0 || value == 1 ? std::optional(*value == 1) : std::nullopt;
}

std::optional<size_t> csv_split_rank(std::string_view name) {
  constexpr std::string_view kNames[] = {"split", "subset", "partition", "set", "dataset", "data set", "phase"};
  const auto* const found = std::ranges::find(kNames, comparison_key(name));
  return found == std::end(kNames) ? std::nullopt : std::optional(static_cast<size_t>(found - kNames));
}

CsvLayout csv_layout(const std::string& where, std::string_view text, std::optional<bool> multi_label,
                     const std::vector<std::string>& labels_of_model) {
  CsvLayout layout;
  std::string separators = "|";
  bool are_several = false;  // whether the column is called labels, tags, …
  CsvReader reader(where, text);
  layout.field_separator = reader.separator();
  const auto first = reader.next();
  if (!first) return layout;
  const auto second = reader.next();
  layout.has_header = is_header(first->fields, second, std::filesystem::path(where).parent_path());
  CsvReader all(where, text);
  while (const auto row = all.next()) require_named_fields(where, *row, first->fields, layout.has_header);
  if (layout.has_header) {
    const Fields& header = first->fields;
    auto file = file_column(header);
    const auto label = label_column(header), labels = labels_column(header);
    layout.flags = find_flags(header, label || labels);
    if (!file && second) file = column_of_images(second->fields);
    if (!label && !labels && second) {
      layout.file = file.value_or(0);
      find_indicators(header, second->fields, multi_label.value_or(false), layout);
      if (!layout.indicators.empty()) return layout;
    }
    deduce_columns(where, header, file, label ? label : labels, layout);
    if (label) layout.names = names_column(header, layout.label);
    layout.has_indices = label == find_column(header, {"class index"}) && label;
    are_several = !label && labels;
    if (are_several && multi_label != false) separators += ";,";  // a name may have a comma
  }
  CsvReader rows(where, text);
  if (layout.has_header) rows.next();
  const CsvLabelForm form =
      csv_label_form({.where = where,
                      .name = layout.has_header ? first->fields.at(layout.label) : "of labels",
                      .values = values_of_column(rows, layout.label),
                      .separators = separators,
                      .may_have_blanks = multi_label == true || (are_several && multi_label != false),
                      .is_of_fastai = layout.has_header && find_column(first->fields, {"fname"}) &&
                                      find_column(first->fields, {"is valid"}),
                      .labels = labels_of_model});
  layout.separator = form.separator;
  layout.has_lists = form.has_lists;
  layout.notice = form.notice;
  if (multi_label == true && layout.separator == '\0') layout.separator = '|';
  return layout;
}

}  // namespace vitrail::data
