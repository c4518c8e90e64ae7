// SPDX-License-Identifier: Apache-2.0
#pragma once
// Class names as Unicode text.  File systems and archives write the same name in different forms: "é" is one character
// on Linux and often a letter with a combining accent on macOS.
#include <string>
#include <string_view>

namespace vitrail::data {

// Normalisation form C.  Text that is not UTF-8 stays as it is.
std::string composed(std::string_view text);

// Equal for names that differ only in their Unicode form, in case, in '_' for ' ', and in spaces around them.
std::string comparison_key(std::string_view name);

}  // namespace vitrail::data
