// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads comma-separated values (RFC 4180) row by row.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::data {

struct CsvRow {
  size_t line;  // line number of the row's first character, from 1
  std::vector<std::string> fields;
};

// Lines end with LF, CRLF or CR.  Fields are separated by commas, or if the first line has none, by semicolons or else
// tabs; a first line "sep=;", as Excel writes, names another separator.  A field in double quotes may contain
// separators, line ends and doubled quotes.  Spaces around fields are removed, also before a quote.  A byte order mark
// and blank lines are skipped.
class CsvReader {
 public:
  CsvReader(std::string where, std::string_view text);  // `text` must outlive the reader

  // The next row; none at the end.  Throws Error naming the line of a quoted field without closing quote.
  std::optional<CsvRow> next();

  char separator() const { return separator_; }

 private:
  void skip_blanks();
  std::string quoted_field();
  std::string plain_field();
  void end_line();
  bool is_at_blank_line() const;

  std::string where_;
  std::string_view remaining_;
  char separator_ = ',';
  size_t line_ = 1;
};

// The content of a text file as UTF-8: UTF-16 with a byte order mark is converted, anything else is returned as it is.
// Throws Error naming `where` for half a character and for a NUL.
std::string utf8_text(std::string content, const std::string& where);

}  // namespace vitrail::data
