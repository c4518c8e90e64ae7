// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text of a status line that fits the terminal.
#include <cstdint>
#include <string>
#include <vector>

namespace vitrail::app {

// What a status line says: "images ━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ 120/480  0:08 left  45.1 images/s".
struct Status {
  std::string what{};                // "images"
  int64_t done = 0, total = 0;       // for the bar; no bar without a total
  std::string count{};               // "120/480"
  std::vector<std::string> parts{};  // the most important first
};

// A line of at most `columns` characters.  The bar is shorter on a narrow terminal, and parts are shown or left out as
// a whole: half a number would be a wrong number.
std::string status_text(const Status& status, size_t columns);

// "0:08 left"
std::string time_left_text(double seconds);

}  // namespace vitrail::app
