// SPDX-License-Identifier: Apache-2.0
#pragma once
// Character references of HTML, such as "&amp;" and "&#228;".
#include <string>
#include <string_view>

namespace vitrail::text {

// As a browser reads them, also without a semicolon ("&ampx").  Source: Python's html.unescape().
std::u32string unescape_html(std::u32string_view text);

// Those with a semicolon alone, and names in capitals ("&EACUTE;").  Source: ftfy's unescape_html().
std::u32string unescape_complete_entities(std::u32string_view text);

// The character that Windows-1252 has at a C1 control character, as browsers read it; others remain.
char32_t without_c1(char32_t c);

}  // namespace vitrail::text
