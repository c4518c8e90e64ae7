// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a list of JSON objects, one a line, as the rows of a table.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/data/datasets/csv_internal.h"

namespace vitrail::data {

// The first row has the keys of the first object, which the following rows have values of: texts as they are, null and
// absent ones as empty fields, others as JSON.  Blank lines are skipped.
class JsonLinesReader {
 public:
  JsonLinesReader(std::string where, std::string_view text);  // `text` must outlive the reader

  // The next row; none at the end.  Throws Error naming a line that is no JSON object.
  std::optional<CsvRow> next();

 private:
  std::string where_;
  std::string_view remaining_;
  size_t line_ = 0;
  std::vector<std::string> keys_;
  std::optional<CsvRow> first_;  // the values behind the keys
};

}  // namespace vitrail::data
