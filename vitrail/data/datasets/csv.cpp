// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/csv_internal.h"

#include <algorithm>
#include <cstdint>

#include "vitrail/base/error.h"
#include "vitrail/base/utf8_internal.h"

namespace vitrail::data {
namespace {

// The separator is recognised by the first line, without its quoted fields.
char separator_of(std::string_view text) {
  bool is_quoted = false, has_semicolon = false, has_tab = false;
  for (const char c : text) {
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted) continue;
    if (c == ',') return ',';
    if (c == '\n' || c == '\r') break;
    has_semicolon |= c == ';';
    has_tab |= c == '\t';
  }
  return has_semicolon ? ';' : has_tab ? '\t' : ',';
}

// The separator that Excel's first line "sep=;" names; '\0' without such a line.
char named_separator(std::string_view text) {
  constexpr std::string_view kName = "sep=";
  if (!text.starts_with(kName) || text.size() < kName.size() + 2) return '\0';
  const char end = text[kName.size() + 1];
  return end == '\n' || end == '\r' ? text[kName.size()] : '\0';
}

// A path with a NUL would be cut there, and name another file.
std::string require_text(std::string text, const std::string& where) {
  if (text.find('\0') == text.npos) return text;
  throw Error(where, "text in UTF-8, or in UTF-16 with a byte order mark", "a NUL byte");
}

}  // namespace

CsvReader::CsvReader(std::string where, std::string_view text) : where_(std::move(where)), remaining_(text) {
  if (remaining_.starts_with("\xEF\xBB\xBF")) remaining_.remove_prefix(3);
  if (const char named = named_separator(remaining_); named != '\0') {
    separator_ = named;
    end_line();
  } else {
    separator_ = separator_of(remaining_);
  }
}

std::optional<CsvRow> CsvReader::next() {
  while (!remaining_.empty() && is_at_blank_line()) end_line();
  if (remaining_.empty()) return std::nullopt;
  CsvRow row{line_, {}};
  while (true) {
    skip_blanks();
    row.fields.push_back(remaining_.starts_with('"') ? quoted_field() : plain_field());
    if (!remaining_.starts_with(separator_)) break;
    remaining_.remove_prefix(1);
  }
  end_line();
  return row;
}

void CsvReader::skip_blanks() {
  const auto is_blank = [&](char c) { return (c == ' ' || c == '\t') && c != separator_; };
  while (!remaining_.empty() && is_blank(remaining_.front())) remaining_.remove_prefix(1);
}

bool CsvReader::is_at_blank_line() const {
  const size_t first = remaining_.find_first_not_of(" \t");
  return first == remaining_.npos || remaining_[first] == '\n' || remaining_[first] == '\r';
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
  return field + plain_field();  // text between the closing quote and the separator, usually none
}

std::string CsvReader::plain_field() {
  const char ends[] = {separator_, '\n', '\r', '\0'};
  const size_t end = std::min(remaining_.find_first_of(ends), remaining_.size());
  std::string_view field = remaining_.substr(0, end);
  remaining_.remove_prefix(end);
  const size_t first = std::min(field.find_first_not_of(" \t\r"), field.size());
  field.remove_prefix(first);
  field = field.substr(0, field.find_last_not_of(" \t\r") + 1);
  return std::string(field);
}

void CsvReader::end_line() {
  const size_t end = std::min(remaining_.find_first_of("\r\n"), remaining_.size());
  remaining_.remove_prefix(end);
  remaining_.remove_prefix(remaining_.starts_with("\r\n") ? 2 : remaining_.empty() ? 0 : 1);
  ++line_;
}

std::string utf8_text(std::string content, const std::string& where) {
  const std::string_view bytes = content;
  const bool is_little = bytes.starts_with("\xFF\xFE"), is_big = bytes.starts_with("\xFE\xFF");
  if (!is_little && !is_big) return require_text(std::move(content), where);
  const auto unit = [&](size_t i) -> uint32_t {
    if (i + 1 >= bytes.size()) throw Error(where, "complete UTF-16", "the end of the file inside a character");
    const auto low = static_cast<uint8_t>(bytes[is_little ? i : i + 1]);
    const auto high = static_cast<uint8_t>(bytes[is_little ? i + 1 : i]);
    return static_cast<uint32_t>(high << 8 | low);
  };
  std::string text;
  for (size_t i = 2; i < bytes.size(); i += 2) {
    uint32_t code = unit(i);
    if (code >= 0xD800 && code < 0xE000) {
      const uint32_t second = code < 0xDC00 ? unit(i += 2) : 0;
      if (second < 0xDC00 || second >= 0xE000)
        throw Error(str(where, ":", 1 + std::ranges::count(text, '\n')), "complete UTF-16", "half a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (second & 0x3FF);
    }
    append_utf8(code, text);
  }
  return require_text(std::move(text), where);
}

}  // namespace vitrail::data
