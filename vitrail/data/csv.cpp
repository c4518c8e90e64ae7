// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/csv_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail::data {

CsvReader::CsvReader(std::string where, std::string_view text) : where_(std::move(where)), remaining_(text) {
  if (remaining_.starts_with("\xEF\xBB\xBF")) remaining_.remove_prefix(3);
}

std::optional<CsvRow> CsvReader::next() {
  while (remaining_.starts_with('\n') || remaining_.starts_with("\r\n")) end_line();
  if (remaining_.empty()) return std::nullopt;
  CsvRow row{line_, {}};
  while (true) {
    row.fields.push_back(remaining_.starts_with('"') ? quoted_field() : plain_field());
    if (!remaining_.starts_with(',')) break;
    remaining_.remove_prefix(1);
  }
  end_line();
  return row;
}

std::string CsvReader::quoted_field() {
  const size_t begin = line_;
  std::string field;
  for (remaining_.remove_prefix(1);; remaining_.remove_prefix(1)) {
    if (remaining_.empty()) throw Error(str(where_, ":", begin), "a closing quote", "the end of the file");
    if (remaining_.starts_with("\"\"")) {
      remaining_.remove_prefix(1);
    } else if (remaining_.starts_with('"')) {
      break;
    }
    line_ += remaining_.front() == '\n';
    field += remaining_.front();
  }
  remaining_.remove_prefix(1);
  return field + plain_field();  // text between the closing quote and the comma, usually none
}

std::string CsvReader::plain_field() {
  const size_t end = std::min(remaining_.find_first_of(",\n"), remaining_.size());
  std::string_view field = remaining_.substr(0, end);
  remaining_.remove_prefix(end);
  const size_t first = std::min(field.find_first_not_of(" \t\r"), field.size());
  field.remove_prefix(first);
  field = field.substr(0, field.find_last_not_of(" \t\r") + 1);
  return std::string(field);
}

void CsvReader::end_line() {
  const size_t end = remaining_.find('\n');
  remaining_.remove_prefix(end == remaining_.npos ? remaining_.size() : end + 1);
  ++line_;
}

}  // namespace vitrail::data
