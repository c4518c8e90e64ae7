// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parts of the HTML pages that commands write, in the style of the reports of training runs.
#include <functional>
#include <string>

#include "vitrail/image/image.h"

namespace vitrail::app {

// An image with its caption and path; without `read`, or where it throws Error, the text alone.
std::string figure_of(const std::function<image::Image()>& read, const std::string& caption, const std::string& path);

// Subheadings, and a paragraph "and 12 more".
inline constexpr const char* kPageStyle =
    "h3 { font-size:14px; font-weight:600; margin:20px 0 8px; } p.more { color:var(--soft); margin:12px 0 0; }";

// The command and the version, and the end of the page.
std::string page_end(const std::string& command_line);

}  // namespace vitrail::app
