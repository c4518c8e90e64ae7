// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/csv_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail::data {

CsvReader::CsvReader(std::string where, std::string_view text) : where_(std::move(where)), rest_(text) {
  if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
}

std::optional<CsvRow> CsvReader::next() {
  while (rest_.starts_with('\n') || rest_.starts_with("\r\n")) end_line();
  if (rest_.empty()) return std::nullopt;
  CsvRow row{line_, {}};
  while (true) {
    row.fields.push_back(rest_.starts_with('"') ? quoted_field() : plain_field());
    if (!rest_.starts_with(',')) break;
    rest_.remove_prefix(1);
  }
  end_line();
  return row;
}

std::string CsvReader::quoted_field() {
  const size_t begin = line_;
  std::string field;
  for (rest_.remove_prefix(1);; rest_.remove_prefix(1)) {
    if (rest_.empty()) throw Error(str(where_, ":", begin), "a closing quote", "the end of the file");
    if (rest_.starts_with("\"\"")) {
      rest_.remove_prefix(1);
    } else if (rest_.starts_with('"')) {
      break;
    }
    line_ += rest_.front() == '\n';
    field += rest_.front();
  }
  rest_.remove_prefix(1);
  return field + plain_field();  // what stands between the closing quote and the comma, as a rule nothing
}

std::string CsvReader::plain_field() {
  const size_t end = std::min(rest_.find_first_of(",\n"), rest_.size());
  std::string_view field = rest_.substr(0, end);
  rest_.remove_prefix(end);
  const size_t first = std::min(field.find_first_not_of(" \t\r"), field.size());
  field.remove_prefix(first);
  field = field.substr(0, field.find_last_not_of(" \t\r") + 1);
  return std::string(field);
}

void CsvReader::end_line() {
  const size_t end = rest_.find('\n');
  rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
  ++line_;
}

}  // namespace vitrail::data
