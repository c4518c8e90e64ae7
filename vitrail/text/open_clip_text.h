// SPDX-License-Identifier: Apache-2.0
#pragma once
// How OpenCLIP cleans texts before it splits them (open_clip/tokenizer.py): ftfy's fix_text(), entities of HTML
// twice, white space as single spaces.  All throw Error for text that is not UTF-8.
#include <string>
#include <string_view>

namespace vitrail::text {

std::string clean_whitespace(std::string_view text);
std::string clean_lower(std::string_view text);         // also in lower case
std::string clean_canonicalize(std::string_view text);  // also in lower case without ASCII punctuation; "_" is a space

}  // namespace vitrail::text
