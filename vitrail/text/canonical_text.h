// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace vitrail::text {

// The text in lower case with single spaces and without ASCII punctuation; "_" is a space.  Source: OpenCLIP's
// canonicalize_text (open_clip/tokenizer.py).  Throws Error for text that is not UTF-8.
std::string canonical_text(std::string_view text);

}  // namespace vitrail::text
