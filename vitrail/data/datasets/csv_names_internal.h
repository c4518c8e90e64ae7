// SPDX-License-Identifier: Apache-2.0
#pragma once
// Columns of class indices and of class names in one CSV dataset.
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/data/datasets/csv_layout_internal.h"
#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {

struct CsvLabels {
  size_t column = 0;                       // the one to read labels from
  std::vector<std::string> class_names{};  // those of the indices in this column; empty if the list does not name them
};

// Beside a column of class indices, layout.names counts if each of its names is that of one class of the model; else a
// warning says that it does not.  Without a model it names the indices 0, 1, …; if one of these is missing, it is the
// column of the labels.  Throws Error naming the first row where an index has another name than before, or a name that
// is that of another class of the model.  A column called "labels" with several names of an index is another one.
CsvLabels csv_labels(const std::string& where, std::string_view text, const CsvLayout& layout,
                     const DatasetOptions& options);

}  // namespace vitrail::data
