// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps of big_vision's canonicalize_text.
#include <string>
#include <string_view>

namespace vitrail::text {

// Without ASCII punctuation (Python's string.punctuation).
std::u32string without_punctuation(const std::u32string& text);

// Each run of Python's white space as one space; none at the end.
std::u32string with_single_spaces(std::u32string_view text);

}  // namespace vitrail::text
