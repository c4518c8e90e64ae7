// SPDX-License-Identifier: Apache-2.0
#pragma once
// Widths of UTF-8 text in a terminal, where a character takes one column: not so for wide and combining ones.
#include <cstddef>
#include <string>
#include <string_view>

namespace vitrail::app {

size_t width_of(std::string_view text);                           // its number of characters
std::string padded(const std::string& text, size_t width);        // with spaces on the right
std::string_view first_columns(std::string_view text, size_t n);  // the beginning, of at most n characters

// The characters that the status line has room for: a line of the full width would put the cursor into the next one.
size_t status_width();

}  // namespace vitrail::app
