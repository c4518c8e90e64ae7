// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text that may not be UTF-8.  JSON files hold only UTF-8.
#include <string>

namespace vitrail::train {

bool is_utf8(const std::string& text);  // without overlong forms and surrogates, as JSON needs it

// Replaces each byte that is not part of a UTF-8 character by \xNN.
std::string escape_non_utf8(const std::string& text);

}  // namespace vitrail::train
