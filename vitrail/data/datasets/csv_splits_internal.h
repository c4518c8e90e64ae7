// SPDX-License-Identifier: Apache-2.0
#pragma once
// The split that each row of a CSV dataset belongs to.
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/data/datasets/csv_internal.h"
#include "vitrail/data/datasets/csv_layout_internal.h"

namespace vitrail::data {

struct CsvSplits {
  std::optional<size_t> column{};       // the column of the names of splits
  std::vector<CsvFlag> flags{};         // without such a column: those of 0 and 1; empty: no splits
  std::set<std::string> known{};        // the splits that rows have: train, val, test
  std::vector<std::string> warnings{};  // columns that look like splits and are not used

  // train, val or test; empty if the row says none, or several.
  std::string_view of(const CsvRow& row) const;
};

// Besides the columns of files and classes, the splits are in
//   a column called split, subset, partition, set, dataset or phase with the name of a split among its values;
//   else a column of any name whose values are all names of splits, at least two different ones;
//   else the flags of the layout.  A row without a true flag is of train, or of test where that has a flag itself.
//
// Throws Error naming the first row that has no split where others have one, and the first row that has different
// splits in two columns.  A column of another name than the first kind's never contradicts that: a warning tells of it.
CsvSplits read_csv_splits(const std::string& where, std::string_view text, const CsvLayout& layout);

}  // namespace vitrail::data
