// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace vitrail::text {

// fix_text() of ftfy 6.3.1 (Speer 2019) with its default steps, for each line again until nothing changes:
// entities of HTML (up to the first line with "<"), mojibake, C1 control characters, Latin ligatures, full and half
// width, typographic quotes, line breaks, escape sequences of terminals, control characters, NFC.
std::u32string fix_text(std::u32string_view text);

}  // namespace vitrail::text
