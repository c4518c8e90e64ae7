// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pieces of a page: text that is safe in HTML, pictures inside it, charts.
#include <string>

#include "vitrail/train/report.h"

namespace vitrail::train {

std::string escaped(const std::string& text);          // for HTML's text and attributes
std::string picture_uri(const image::Image& picture);  // "data:image/png;base64,…"
std::string percent(double fraction, int digits = 1);  // "88.1 %"
std::string render_chart(const Chart& chart);          // an <svg> with its legend
std::string render_confusion(const Report& report);    // a table, or a list where there are many classes
extern const char* const kReportStyle;                 // the page's <style>

}  // namespace vitrail::train
