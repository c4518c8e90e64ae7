// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output/status_text.h"

#include <algorithm>

#include "apps/vitrail/output/progress.h"
#include "apps/vitrail/output/text_width.h"

namespace vitrail::app {
namespace {

std::string bar(const Status& status, int cells) {
  const double share = static_cast<double>(status.done) / static_cast<double>(status.total);
  std::string text;
  for (int i = 0; i < cells; ++i) text += i < static_cast<int>(share * cells) ? "━" : "╌";
  return text;
}

// Half of a narrow terminal is for the numbers.
int bar_cells(size_t columns) { return columns >= 90 ? 20 : columns >= 50 ? 10 : 5; }

}  // namespace

std::string status_text(const Status& status, size_t columns) {
  std::string text = status.what;
  if (status.total > 0) text += " " + bar(status, bar_cells(columns));
  text += " " + status.count;
  if (width_of(text) > columns) text = status.what + " " + status.count;
  if (width_of(text) > columns) {  // a long name of a file
    const size_t for_count = std::min(columns, width_of(status.count) + 1);
    text = std::string(first_columns(status.what, columns - for_count)) + " " + status.count;
  }
  for (const std::string& part : status.parts) {
    if (width_of(text) + 2 + width_of(part) > columns) break;
    text += "  " + part;
  }
  return text;
}

std::string time_left_text(double seconds) { return duration_text(seconds) + " left"; }

}  // namespace vitrail::app
