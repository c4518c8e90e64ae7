// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/list_columns_internal.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/splits_internal.h"
#include "vitrail/data/datasets/unicode_names_internal.h"
#include "vitrail/image/decode.h"

namespace vitrail::data {
namespace {

using Names = std::vector<std::string>;

// Names in the form of comparison_key().
const Names kFiles{"file",      "filename", "file name", "fname",      "filepath",   "filepaths",
                   "file path", "path",     "image",     "image path", "image name", "image id"};
const Names kLabels{"label", "class", "class name", "target", "category"};
const Names kSeveralLabels{"labels", "tags", "classes", "class names", "categories"};
const Names kIndices{"class index", "class id"};
const Names kCaptions{"caption", "captions", "title", "text", "description", "sentence"};
const Names kSplits{"split", "subset", "partition", "set", "dataset", "data set", "phase"};
const Names kOthers{"", "id", "index", "fold"};  // columns that are no classes although they may have 0 and 1

bool has(const Names& names, const std::string& column) {
  return std::ranges::find(names, comparison_key(column)) != names.end();
}

std::vector<size_t> columns_called(const Names& header, const Names& names) {
  std::vector<size_t> found;
  for (size_t i = 0; i < header.size(); ++i) {
    if (has(names, header[i])) found.push_back(i);
  }
  return found;
}

// The split of a column of 0 and 1 such as is_valid; empty for other names.
std::string_view flag_split(const std::string& column) {
  const std::string key = comparison_key(column);
  return key.starts_with("is") ? canonical_split(std::string_view(key).substr(2)) : std::string_view();
}

[[noreturn]] void refuse(const std::string& where, const std::string& expected, const std::string& option,
                         const Names& header) {
  throw Error(where, expected + " (or --columns " + option + ")", "these columns: " + quoted_list(header));
}

// The column that an option names, or none without the option.
std::optional<size_t> named_column(const std::string& where, const Names& header, const std::string& key,
                                   const std::string& name) {
  if (name.empty()) return std::nullopt;
  for (size_t i = 0; i < header.size(); ++i) {
    if (comparison_key(header[i]) == comparison_key(name)) return i;
  }
  const std::optional<int64_t> number = list_integer(name);
  if (!number || *number < 1 || *number > std::ssize(header))
    refuse(where, "the column " + name, key + "=NAME", header);
  return static_cast<size_t>(*number - 1);
}

// A header has a column of a known name, and no image.
bool is_header(const Names& first, const Columns& columns) {
  if (std::ranges::any_of(first, image::is_image_path)) return false;
  return std::ranges::any_of(first, [&](const std::string& field) {
    return has(kFiles, field) || has(kLabels, field) || has(kSeveralLabels, field) || has(kIndices, field) ||
           comparison_key(field) == comparison_key(columns.file) ||
           comparison_key(field) == comparison_key(columns.label);
  });
}

size_t file_column(const std::string& where, const Names& header, const Columns& columns) {
  if (const auto named = named_column(where, header, "file", columns.file)) return *named;
  for (const std::string& name : kFiles) {
    if (const auto found = columns_called(header, {name}); !found.empty()) return found.front();
  }
  refuse(where, "a column of images called file, filename, path or image", "file=NAME", header);
}

// Names of classes precede their indices.
std::optional<size_t> label_column(const std::string& where, const Names& header, const Columns& columns) {
  if (const auto named = named_column(where, header, "label", columns.label)) return named;
  std::vector<size_t> found = columns_called(header, kLabels);
  for (const size_t column : columns_called(header, kSeveralLabels)) found.push_back(column);
  if (found.empty()) found = columns_called(header, kIndices);
  if (found.size() > 1) refuse(where, "one column of labels", "label=NAME", header);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

void find_split(const std::string& where, const Names& header, const Columns& columns, ListColumns& result) {
  if (columns.split == kNoSplit) return;
  result.split = named_column(where, header, "split", columns.split);
  if (!result.split && result.has_header) {
    std::vector<size_t> found = columns_called(header, kSplits);
    for (size_t i = 0; i < header.size(); ++i) {
      if (!flag_split(header[i]).empty()) found.push_back(i);
    }
    if (found.size() > 1) refuse(where, "one column of splits", "split=NAME", header);
    if (!found.empty()) result.split = found.front();
  }
  if (result.split) result.flag = flag_split(header[*result.split]);
}

// All columns but those of the file and the split, if they have 0 and 1 in the first row of data.
void find_indicators(const std::string& where, const Names& header, const Names& row, ListColumns& result) {
  result.labels.clear();
  bool are_classes = true;
  for (size_t i = 0; i < header.size(); ++i) {
    if (i == result.file || i == result.split || has(kOthers, header[i])) continue;
    are_classes = are_classes && i < row.size() && list_indicator(row[i]);
    result.labels.push_back(i);
    result.classes.push_back(header[i]);
  }
  if (!are_classes || result.labels.size() < 2)
    refuse(where, "a column of classes called label, class, class_name, class_index, target or category", "label=NAME",
           header);
}

std::optional<double> number_in(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == text.npos) return std::nullopt;
  std::string digits(text.substr(first, text.find_last_not_of(' ') + 1 - first));
  if (const size_t comma = digits.find(','); comma != digits.npos) digits[comma] = '.';
  if (digits.front() == '+') digits.erase(0, 1);
  if (digits.find_first_not_of("0123456789.eE+-") != digits.npos) return std::nullopt;  // "inf" and "nan" are names
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) return std::nullopt;
  return error == std::errc() ? value : HUGE_VAL;
}

}  // namespace

ListColumns find_list_columns(const std::string& where, const Names& first, const Names& second,
                              const Columns& columns) {
  ListColumns result{.separators = columns.separator.empty() ? "|" : columns.separator};
  result.has_header = is_header(first, columns);
  if (!result.has_header) {
    if (columns.file.empty() && std::ranges::none_of(first, image::is_image_path))
      refuse(where, "a header with columns called file and label, or rows of an image and its label",
             "file=NAME,label=NAME", first);
    result.file = named_column(where, first, "file", columns.file).value_or(0);
    result.labels = {named_column(where, first, "label", columns.label).value_or(1)};
    find_split(where, first, columns, result);
    return result;
  }
  result.file = file_column(where, first, columns);
  find_split(where, first, columns, result);
  const std::optional<size_t> label = label_column(where, first, columns);
  if (!label) {
    find_indicators(where, first, second, result);
    return result;
  }
  result.labels = {*label};
  result.are_indices = comparison_key(first[*label]) == kIndices.front();
  if (columns.separator.empty() && has(kSeveralLabels, first[*label])) result.separators += ";,";
  return result;
}

std::optional<size_t> find_split_column(const std::string& where, const Names& header, const Columns& columns) {
  if (columns.split == kNoSplit) return std::nullopt;
  if (const auto named = named_column(where, header, "split", columns.split)) return named;
  const std::vector<size_t> found = columns_called(header, kSplits);
  if (found.size() > 1) refuse(where, "one column of splits", "split=NAME", header);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

CaptionColumns find_caption_columns(const std::string& where, const Names& first, const Columns& columns) {
  CaptionColumns result;
  result.has_header = std::ranges::none_of(first, image::is_image_path);
  if (!result.has_header) {
    result.file = named_column(where, first, "file", columns.file).value_or(0);
    result.caption = named_column(where, first, "caption", columns.caption).value_or(1);
    if (columns.split != kNoSplit) result.split = named_column(where, first, "split", columns.split);
    return result;
  }
  result.file = file_column(where, first, columns);
  std::optional<size_t> caption = named_column(where, first, "caption", columns.caption);
  if (!caption) {
    const std::vector<size_t> found = columns_called(first, kCaptions);
    if (found.size() != 1)
      refuse(where, "one column of captions, called caption, title or text", "caption=NAME", first);
    caption = found.front();
  }
  result.caption = *caption;
  result.split = find_split_column(where, first, columns);
  return result;
}

bool names_images_and_captions(const Names& header) {
  const auto is_label = [](const std::string& column) {
    return has(kLabels, column) || has(kSeveralLabels, column) || has(kIndices, column);
  };
  return !columns_called(header, kFiles).empty() && !columns_called(header, kCaptions).empty() &&
         std::ranges::none_of(header, is_label);
}

bool names_images_and_labels(const Names& header) {
  const auto is_label = [](const std::string& column) {
    return has(kLabels, column) || has(kSeveralLabels, column) || has(kIndices, column);
  };
  return !columns_called(header, {"file name"}).empty() && std::ranges::any_of(header, is_label);
}

std::optional<int64_t> list_integer(std::string_view text) {
  constexpr double kMax = int64_t{1} << 53;  // above, a double does not tell integers apart
  const std::optional<double> number = number_in(text);
  if (!number || !(std::abs(*number) <= kMax) || *number != std::floor(*number)) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<bool> list_indicator(const std::string& text) {
  const std::string key = comparison_key(text);
  if (key == "false") return false;
  if (key == "true") return true;
  const std::optional<int64_t> value = list_integer(text);
  return value == 0 || value == 1 ? std::optional(*value == 1) : std::nullopt;
}

bool is_no_label(const std::string& text) {
  if (text.find_first_not_of("0123456789") == text.npos) return false;
  if (number_in(text)) return !list_integer(text) || *list_integer(text) < 0;
  return text.find_first_not_of("0123456789 ,;") == text.npos;
}

bool is_list(std::string_view text) { return text.size() > 1 && text.front() == '[' && text.back() == ']'; }

std::vector<std::string> labels_in(std::string_view text, char separator) {
  std::vector<std::string> labels;
  std::string label;
  char quote = '\0';
  const auto end_label = [&] {
    const size_t first = label.find_first_not_of(' ');
    if (first != label.npos) labels.push_back(label.substr(first, label.find_last_not_of(' ') + 1 - first));
    label.clear();
  };
  const bool has_brackets = is_list(text);
  if (has_brackets) text = text.substr(1, text.size() - 2);
  for (const char c : text) {
    const bool begins =
        has_brackets && quote == '\0' && (c == '\'' || c == '"') && label.find_first_not_of(' ') == label.npos;
    if (begins || (quote != '\0' && c == quote)) {
      quote = begins ? c : '\0';
    } else if (c == separator && quote == '\0') {
      end_label();
    } else {
      label += c;
    }
  }
  end_label();
  return labels;
}

}  // namespace vitrail::data
