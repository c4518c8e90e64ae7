// SPDX-License-Identifier: Apache-2.0
#pragma once
// Unicode text as code points, and the properties and mappings that tokenizers use.
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::text {

std::u32string code_points(std::string_view utf8);  // throws Error for text that is not UTF-8
std::string to_utf8(std::u32string_view text);

bool is_white_space(char32_t c);    // the property White_Space
bool is_letter(char32_t c);         // category L
bool is_number(char32_t c);         // category N
bool is_decimal_digit(char32_t c);  // category Nd

// The extended grapheme clusters of a text in UTF-8 (Unicode, annex 29).
std::vector<std::string_view> grapheme_clusters(std::string_view utf8);

std::u32string nfc(std::u32string_view text);
std::u32string nfkc(std::u32string_view text);
// Each character's full lower case, whatever is around it, as Rust's char::to_lowercase.
std::u32string lower_each(std::u32string_view text);
// The same, but Σ at the end of a word becomes ς (Unicode, section 3.13), as Python's str.lower().
std::u32string lower_text(std::u32string_view text);

}  // namespace vitrail::text
