// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a column of a CSV dataset writes several labels of an image.
#include <set>
#include <string>
#include <vector>

namespace vitrail::data {

struct CsvLabelForm {
  char separator = '\0';  // between the labels of a row; '\0': each row has one label
  bool has_lists = false;
  std::string notice{};  // what a user is to know of it; usually empty
};

// What tells the form of the labels.
struct CsvLabelColumn {
  std::string where{};                // the file, for errors
  std::string name{};                 // name of the column
  std::set<std::string> values{};     // its different values
  std::string separators{};           // the first one that a value has separates labels
  bool may_have_blanks = false;       // whether blanks may separate labels: the column is called labels, tags, …
  bool is_of_fastai = false;          // whether fastai wrote the columns fname, labels, is_valid, with blanks
  std::vector<std::string> labels{};  // those of a model; may be empty
};

// If all values are lists as Python and JSON write them (['a', 'b'], [0, 1]), these; else the first of the separators.
// Else blanks, if they may separate labels and this is certain:
//   with a model, if some value is none of its labels and all their parts are;
//   without, if the parts are integers; or if values have different numbers of parts, and all parts of one of them are
//   values themselves or parts of most values; for fastai, if a part of one is in another one.
// Without a model a notice tells of blanks, that they separate or may have been meant to.  Throws Error if some values
// alone are lists.
CsvLabelForm csv_label_form(const CsvLabelColumn& column);

// The parts between separators, without the blanks around them and without empty parts.
std::vector<std::string> csv_label_parts(const std::string& text, char separator);

// The items of a list such as "['a', 'b']" or "[0 1]", without their quotes.
std::vector<std::string> csv_list_items(const std::string& text);

}  // namespace vitrail::data
