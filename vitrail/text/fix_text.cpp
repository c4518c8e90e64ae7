// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/fix_text_internal.h"

#include <algorithm>
#include <array>

#include "vitrail/text/html_entities_internal.h"
#include "vitrail/text/mojibake_internal.h"
#include "vitrail/text/unicode_internal.h"

namespace vitrail::text {
namespace {

struct Ligature {
  char32_t ligature;
  std::u32string_view letters;
};

constexpr std::array<Ligature, 22> kLigatures{
    {{U'Ĳ', U"IJ"},  {U'ĳ', U"ij"},  {U'ŉ', U"\u02bcn"}, {U'Ǳ', U"DZ"}, {U'ǲ', U"Dz"}, {U'ǳ', U"dz"},
     {U'Ǆ', U"DŽ"},  {U'ǅ', U"Dž"},  {U'ǆ', U"dž"},      {U'Ǉ', U"LJ"}, {U'ǈ', U"Lj"}, {U'ǉ', U"lj"},
     {U'Ǌ', U"NJ"},  {U'ǋ', U"Nj"},  {U'ǌ', U"nj"},      {U'ﬀ', U"ff"}, {U'ﬁ', U"fi"}, {U'ﬂ', U"fl"},
     {U'ﬃ', U"ffi"}, {U'ﬄ', U"ffl"}, {U'ﬅ', U"ſt"},      {U'ﬆ', U"st"}}};

bool is_control(char32_t c) {
  return c <= 0x08 || c == 0x0b || (c >= 0x0e && c <= 0x1f) || c == 0x7f || (c >= 0x206a && c <= 0x206f) ||
         c == 0xfeff || (c >= 0xfff9 && c <= 0xfffc);
}

// The steps that change a character by itself.  Line breaks of two characters are one character before.
void append_plain(char32_t c, std::u32string& to) {
  c = without_c1(c);
  const auto ligature = std::ranges::find(kLigatures, c, &Ligature::ligature);
  if (ligature != kLigatures.end()) {
    to += ligature->letters;
  } else if (c == 0x3000) {
    to += U' ';
  } else if (c >= 0xff01 && c <= 0xffef) {
    to += nfkc({&c, 1});
  } else if (c == 0x2bc || (c >= 0x2018 && c <= 0x201b)) {
    to += U'\'';
  } else if (c >= 0x201c && c <= 0x201f) {
    to += U'"';
  } else if (c == U'\r' || c == 0x2028 || c == 0x2029) {
    to += U'\n';
  } else {
    to += c;
  }
}

// The length of a sequence such as "\x1b[36;44m" at the beginning of a text; 0 if there is none.
size_t terminal_escape_length(std::u32string_view text) {
  if (!text.starts_with(U"\x1b[")) return 0;
  size_t end = 2;
  while (end < text.size() && (is_decimal_digit(text[end]) || text[end] == U';')) ++end;
  const bool letter = end < text.size() && text[end] < 0x80 && is_letter(text[end]);
  return letter ? end + 1 : 0;
}

std::u32string without_controls(std::u32string_view text) {
  std::u32string result;
  while (!text.empty()) {
    const size_t escape = terminal_escape_length(text);
    if (escape == 0 && !is_control(text.front())) result += text.front();
    text.remove_prefix(std::max<size_t>(escape, 1));
  }
  return result;
}

std::u32string fixed_once(const std::u32string& line, bool entities) {
  const std::u32string repaired = repair_mojibake(entities ? unescape_complete_entities(line) : line);
  std::u32string plain;
  for (size_t i = 0; i < repaired.size(); ++i) {
    if (repaired.compare(i, 2, U"\r\n") != 0) append_plain(repaired[i], plain);
  }
  return nfc(without_controls(plain));
}

std::u32string fixed(std::u32string line, bool entities) {
  constexpr int kMaxRounds = 16;  // each unescapes one level of "&amp;amp;": bounds the time for a hostile text
  for (int round = 0; round < kMaxRounds; ++round) {
    std::u32string next = fixed_once(line, entities);
    if (next == line) break;
    line = std::move(next);
  }
  return line;
}

}  // namespace

std::u32string fix_text(std::u32string_view text) {
  std::u32string result;
  bool entities = true;
  while (!text.empty()) {
    const std::u32string_view line = text.substr(0, std::min(text.find(U'\n'), text.size() - 1) + 1);
    entities = entities && line.find(U'<') == line.npos;
    result += fixed(std::u32string(line), entities);
    text.remove_prefix(line.size());
  }
  return result;
}

}  // namespace vitrail::text
