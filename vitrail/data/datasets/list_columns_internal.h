// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the columns of a list are, and how a field says labels.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/data/datasets/manifest.h"

namespace vitrail::data {

struct ListColumns {
  bool has_header = false;
  size_t file = 0;
  std::vector<size_t> labels{1};       // one, or one of 0 and 1 for each class
  std::vector<std::string> classes{};  // the names of the latter
  std::optional<size_t> split{};
  std::string_view flag{};   // the split of rows with 1 if `split` is a column of 0 and 1
  bool are_indices = false;  // labels are class indices
  std::string separators{};  // the first one that a field has separates labels
};

// Finds columns by the names in the first row, or as `columns` says.  `second`: the first row of data.  Throws Error
// that shows the columns unless names or options tell each of them.
ListColumns find_list_columns(const std::string& where, const std::vector<std::string>& first,
                              const std::vector<std::string>& second, const Columns& columns);

// The columns of a list of images and captions.
struct CaptionColumns {
  bool has_header = false;
  size_t file = 0, caption = 1;
  std::optional<size_t> split{};
};

// Finds them by the names in the first row, or as `columns` says; without a header the first column is the image, the
// second the caption.  Throws Error that shows the columns if names and options do not tell them.
CaptionColumns find_caption_columns(const std::string& where, const std::vector<std::string>& first,
                                    const Columns& columns);

// The column of splits, if there is one.
std::optional<size_t> find_split_column(const std::string& where, const std::vector<std::string>& header,
                                        const Columns& columns);

// Whether the columns have a name of images and one of captions, and none of labels.
bool names_images_and_captions(const std::vector<std::string>& header);

// Whether the columns have Hugging Face's name of images, and a name of labels.
bool names_images_and_labels(const std::vector<std::string>& header);

// The integer that is the whole text, also as spreadsheets write it: "3.0", "3,0", "3E+00".
std::optional<int64_t> list_integer(std::string_view text);

// 0 or 1, also as 0.0, 1.0, false and true.
std::optional<bool> list_indicator(const std::string& text);

// Whether the text is a number, but no integer, or several numbers, which nobody calls a class.
bool is_no_label(const std::string& text);

// Whether the text is a list as Python and JSON write it.
bool is_list(std::string_view text);

// The labels of a field, without blanks and quotes around them and without empty ones.
std::vector<std::string> labels_in(std::string_view text, char separator);

}  // namespace vitrail::data
