// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text that may not be UTF-8.  JSON files hold only UTF-8.
#include <string>
#include <string_view>

namespace vitrail {

bool is_utf8(std::string_view text);  // without overlong forms and surrogates, as JSON needs it

// Replaces each byte that is not part of a UTF-8 character by \xNN.
std::string escape_non_utf8(std::string_view text);

}  // namespace vitrail
