// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text that was decoded from UTF-8 by another encoding: "schÃ¶n" for "schön".
#include <string>

namespace vitrail::text {

// The text as it was meant, where that is certain.  Source: fix_encoding() of ftfy 6.3.1 (Speer 2019, "ftfy"), whose
// expressions and encodings are in tables/mojibake.json.
std::u32string repair_mojibake(std::u32string text);

}  // namespace vitrail::text
