// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text that may not be UTF-8.  JSON files hold only UTF-8.
#include <cstddef>
#include <string>
#include <string_view>

namespace vitrail {

// The length in bytes of the UTF-8 character at the beginning of `text`; 0 if there is none (RFC 3629, section 4).
size_t utf8_length(std::string_view text);

// Appends the character with this code point, at most U+10FFFF.
void append_utf8(char32_t code, std::string& to);

bool is_utf8(std::string_view text);  // without overlong forms and surrogates, as JSON needs it

// Replaces each byte that is not part of a UTF-8 character by \xNN.
std::string escape_non_utf8(std::string_view text);

// Likewise, and control characters (C0, DEL, C1), which a terminal would interpret.  For names.
std::string escape_unprintable(std::string_view text);

// Likewise, but a newline before two spaces remains: messages list details in indented lines.  The newline of a name in
// a message would look like the end of the message.
std::string escape_message(std::string_view text);

}  // namespace vitrail
