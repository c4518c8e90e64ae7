// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "vitrail/base/utf8_internal.h"

namespace vitrail {
namespace {

// Whether the character changes the direction of the text after it, which then shows another order than it has.
bool is_bidirectional_control(std::string_view character) {
  const auto is_in = [&](std::string_view first, std::string_view last) {
    return first <= character && character <= last;
  };
  return character == "\u061c" || is_in("\u200e", "\u200f") || is_in("\u202a", "\u202e") || is_in("\u2066", "\u2069");
}

// The number of bytes of the UTF-8 character at the front of `text`; 0 if it is invalid or a control character.
size_t printable_bytes(std::string_view text) {
  const size_t length = utf8_length(text);
  const auto first = static_cast<unsigned char>(text.front());
  const bool c0_control = first < 0x20 || first == 0x7f;
  const bool c1_control = length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
  return c0_control || c1_control || is_bidirectional_control(text.substr(0, length)) ? 0 : length;
}

// \xNN
std::string hex_escape(char byte, const char* format) {
  char code[8];
  std::snprintf(code, sizeof code, format, static_cast<unsigned>(static_cast<uint8_t>(byte)));
  return code;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) > 0x9F, too_high = first == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || too_high ? 0 : length;
}

void append_utf8(char32_t code, std::string& to) {
  if (code < 0x80) {
    to += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;  // bytes that follow the first
  constexpr char32_t kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  to += static_cast<char>(kFirst[more] | code >> (6 * more));
  for (int i = more; i-- > 0;) to += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at));
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string escape_non_utf8(std::string_view text) {
  std::string escaped;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at));
    escaped += length == 0 ? hex_escape(text[at], "\\x%02X") : std::string(text.substr(at, length));
    at += length == 0 ? 1 : length;
  }
  return escaped;
}

std::string escape_unprintable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t size = printable_bytes(text);
    result += size == 0 ? hex_escape(text.front(), "\\x%02x") : std::string(text.substr(0, size));
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return result;
}

std::string escape_message(std::string_view text) {
  std::string result;
  for (size_t end = text.find("\n  "); end != text.npos; end = text.find("\n  ")) {
    result += escape_unprintable(text.substr(0, end)) + "\n";
    text.remove_prefix(end + 1);
  }
  return result + escape_unprintable(text);
}

}  // namespace vitrail
