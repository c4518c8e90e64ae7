// SPDX-License-Identifier: Apache-2.0
#pragma once
// Comma-separated values as RFC 4180 has them, read a row at a time.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::data {

struct CsvRow {
  size_t line;  // where the row begins, counted from 1
  std::vector<std::string> fields;
};

// Lines end with LF or CRLF; a field in double quotes may hold commas, line ends, and quotes written twice; spaces
// around fields that are not quoted are dropped; a byte order mark is skipped, and so are empty lines.
class CsvReader {
 public:
  CsvReader(std::string where, std::string_view text);  // `text` has to outlive the reader

  // The next row; nothing at the end.  Throws Error naming the line where a quoted field does not end.
  std::optional<CsvRow> next();

 private:
  std::string quoted_field();
  std::string plain_field();
  void end_line();

  std::string where_;
  std::string_view rest_;
  size_t line_ = 1;
};

}  // namespace vitrail::data
