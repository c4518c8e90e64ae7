// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parts of the HTML report: escaped text, embedded images, charts.
#include <string>

#include "vitrail/train/report_internal.h"

namespace vitrail::train {

std::string escape_html(const std::string& text);      // for text and attributes
std::string data_uri(const image::Image& image);       // "data:image/png;base64,…"
std::string percent(double fraction, int digits = 1);  // "88.1 %"
std::string render_chart(const Chart& chart);          // an <svg> with its legend
std::string render_confusion(const Report& report);    // a table, or a list of pairs if there are many classes
extern const char* const kReportStyle;                 // the page's style sheet

}  // namespace vitrail::train
