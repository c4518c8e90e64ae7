// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/canonical_text_internal.h"

#include "vitrail/text/unicode_internal.h"

namespace vitrail::text {
namespace {

bool is_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool is_python_space(char32_t c) { return is_white_space(c) || (c >= 0x1c && c <= 0x1f); }

}  // namespace

std::u32string without_punctuation(const std::u32string& text) {
  std::u32string result = text;
  std::erase_if(result, is_punctuation);
  return result;
}

std::u32string with_single_spaces(std::u32string_view text) {
  std::u32string result;
  for (const char32_t c : text) {
    if (!is_python_space(c)) {
      result += c;
    } else if (result.empty() || result.back() != U' ') {
      result += U' ';
    }
  }
  if (!result.empty() && result.back() == U' ') result.pop_back();
  return result;
}

}  // namespace vitrail::text
