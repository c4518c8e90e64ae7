// SPDX-License-Identifier: Apache-2.0
#include <utf8proc.h>

#include <cstdlib>

#include "vitrail/base/error.h"
#include "vitrail/base/utf8_internal.h"
#include "vitrail/text/unicode_internal.h"

namespace vitrail::text {
namespace {

constexpr char32_t kCapitalDottedI = 0x130, kDotAbove = 0x307, kCapitalSigma = 0x3a3, kSmallSigma = 0x3c3,
                   kFinalSigma = 0x3c2;

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

// The property Cased, but for case-ignorable letters.  Letters in circles and squares and Roman numerals have a case.
bool is_cased(char32_t c) {
  const auto kind = category(c);
  if (kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL || kind == UTF8PROC_CATEGORY_LT) return true;
  return c == U'ª' || c == U'º' || (c >= 0x2160 && c <= 0x217f) || (c >= 0x24b6 && c <= 0x24e9) ||
         (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

// The property Case_Ignorable.
bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:  // U+0387 is an escape, because an editor that normalises text makes it U+00B7
      return std::u32string_view(U"'.:·͵\u0387՟״‘’․‧︓﹒﹕＇．：").find(c) != std::u32string_view::npos;
  }
}

// Whether the Σ at index i ends a word: a cased letter precedes it and none follows, case-ignorable ones aside.
bool is_final_sigma(std::u32string_view text, size_t i) {
  size_t before = i, after = i + 1;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return before > 0 && is_cased(text[before - 1]) && !(after < text.size() && is_cased(text[after]));
}

void append_lower(char32_t c, std::u32string& to) {
  if (c == kCapitalDottedI) {  // the only character whose lower case is two
    to += {U'i', kDotAbove};
  } else {
    to += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  }
}

std::u32string composed(std::u32string_view text, int options) {
  const std::string utf8 = to_utf8(text);
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(utf8.data()), static_cast<utf8proc_ssize_t>(utf8.size()),
                   &mapped, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | options));
  if (length < 0) throw Error("text", "UTF-8 that can be normalised", utf8proc_errmsg(length));
  std::u32string result = code_points({reinterpret_cast<const char*>(mapped), static_cast<size_t>(length)});
  std::free(mapped);
  return result;
}

}  // namespace

std::u32string code_points(std::string_view utf8) {
  std::u32string result;
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(utf8.data());
  auto left = static_cast<utf8proc_ssize_t>(utf8.size());
  while (left > 0) {
    utf8proc_int32_t c = 0;
    const utf8proc_ssize_t length = utf8proc_iterate(at, left, &c);
    if (length <= 0) throw Error("text", "UTF-8", str("another byte at ", utf8.size() - static_cast<size_t>(left)));
    result += static_cast<char32_t>(c);
    at += length;
    left -= length;
  }
  return result;
}

std::string to_utf8(std::u32string_view text) {
  std::string result;
  for (const char32_t c : text) append_utf8(c, result);
  return result;
}

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_letter(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_number(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_decimal_digit(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

std::vector<std::string_view> grapheme_clusters(std::string_view utf8) {
  std::vector<std::string_view> clusters;
  utf8proc_int32_t before = 0, state = 0;
  size_t begin = 0, at = 0;
  for (const char32_t c : code_points(utf8)) {
    const auto next = static_cast<utf8proc_int32_t>(c);
    if (at > 0 && utf8proc_grapheme_break_stateful(before, next, &state)) {
      clusters.push_back(utf8.substr(begin, at - begin));
      begin = at;
    }
    before = next;
    at += utf8_length(utf8.substr(at));
  }
  if (at > begin) clusters.push_back(utf8.substr(begin, at - begin));
  return clusters;
}

std::u32string nfc(std::u32string_view text) { return composed(text, 0); }

std::u32string nfkc(std::u32string_view text) { return composed(text, UTF8PROC_COMPAT); }

std::u32string lower_each(std::u32string_view text) {
  std::u32string result;
  for (const char32_t c : text) append_lower(c, result);
  return result;
}

std::u32string lower_text(std::u32string_view text) {
  std::u32string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == kCapitalSigma) {
      result += is_final_sigma(text, i) ? kFinalSigma : kSmallSigma;
    } else {
      append_lower(text[i], result);
    }
  }
  return result;
}

}  // namespace vitrail::text
