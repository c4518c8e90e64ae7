// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the columns of a CSV dataset are.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::data {

// A column of 0 and 1 that says by its name whether a row belongs to a split.
struct CsvFlag {
  size_t column = 0;
  std::string_view split{};  // train, val or test
  bool is_certain = true;    // else other values than 0 and 1 make it another column
};

struct CsvLayout {
  bool has_header = false;
  size_t file = 0, label = 1;     // columns
  bool has_indices = false;       // the column of labels is called class_index
  std::optional<size_t> names{};  // another column of labels, which may name the classes of the first
  // is_valid, is_training_img and the like; train, val, test if there are two of them, or one beside a column of
  // labels.  Alone, "valid" is none: an image may be valid.
  std::vector<CsvFlag> flags{};
  char field_separator = ',';
  char separator = '\0';               // between the labels of a row; '\0': each row has one label
  bool has_lists = false;              // labels are lists as "['a', 'b']"
  std::string notice{};                // what a user is to know of the labels
  std::vector<size_t> indicators{};    // columns of 0 and 1, one for each class; empty: labels are in one column
  std::vector<std::string> classes{};  // the header's names of these columns

  bool is_multi_label() const { return separator != '\0' || !indicators.empty(); }
};

// Recognises the layout from the header, the first row, and the values in the column of labels (csv_labels_internal.h).
// `multi_label`, `labels`: as in DatasetOptions; `where`: the file's path.  Throws Error as CsvReader, if a header does
// not tell which columns are the file and the label, and naming the first row that has more fields than the header
// (without one: than the first row), unless they are empty.
CsvLayout csv_layout(const std::string& where, std::string_view text, std::optional<bool> multi_label,
                     const std::vector<std::string>& labels = {});

// The place of a column's name among those of columns of splits (split, subset, …), whose first one counts; none for
// other names.
std::optional<size_t> csv_split_rank(std::string_view name);

// The number that is the whole text, without the spaces around it, also as spreadsheets write it: "3.0", "3,0",
// "3E+00".
std::optional<double> csv_number(std::string_view text);

// Likewise, if it is an integer.
std::optional<int64_t> csv_integer(std::string_view text);

// The text of an integer without what a spreadsheet may add: "7" for "+7", "7.0" and "7,0", but "007" for "007".
std::string csv_digits(std::string_view text);

// 0 or 1, also as 0.0, 1.0, false and true.
std::optional<bool> csv_indicator(const std::string& text);

}  // namespace vitrail::data
