// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parts of the HTML report: escaped text, embedded images, charts.
#include <string>

#include "vitrail/train/objectives/scores.h"
#include "vitrail/train/report/report_internal.h"

namespace vitrail::train {

std::string escape_html(const std::string& text);       // for text and attributes
std::string data_uri(const image::Image& image);        // as PNG or JPEG: the smaller one
std::string percent(double fraction, int digits = 1);   // "88.1 %"
std::string with_thousands_separators(int64_t number);  // 5717416 → "5,717,416"
std::string duration_text(double seconds);              // "1 h 05 min", "3 min 10 s", "7.5 s"
std::string render_chart(const Chart& chart);           // an <svg> with its legend
std::string render_confusion(const Report& report);     // a table, or a list of pairs if there are many classes
// The curves of metrics.csv: loss, the metric (of training too, or only of validation), and the learning rate.
std::vector<Chart> metric_charts(const std::filesystem::path& csv, const Metrics& metrics);
void remove_empty(std::vector<Chart>& charts);  // a curve needs two points
extern const char* const kReportStyle;          // the page's style sheet
// A page in this style up to its heading, and its end.  `style`: more rules.
std::string page_begin(const std::string& title, const std::string& style = "");
inline constexpr const char* kPageEnd = "</main></body></html>\n";

}  // namespace vitrail::train
