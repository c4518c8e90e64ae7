// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rows of a run's metrics.csv.
#include <map>
#include <string>
#include <vector>

#include "tests/train/training_fixture.h"

namespace vitrail::testing {

// Each row by the titles of its columns.
inline std::vector<std::map<std::string, std::string>> metric_rows(const std::filesystem::path& run) {
  std::vector<std::string> titles;
  std::vector<std::map<std::string, std::string>> rows;
  std::istringstream lines(train::read_text(run / "metrics.csv"));
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields{""};
    for (const char c : line) {
      if (c == ',') fields.emplace_back();
      if (c != ',') fields.back().push_back(c);
    }
    if (titles.empty()) {
      titles = fields;
      continue;
    }
    rows.emplace_back();
    for (size_t i = 0; i < fields.size(); ++i) rows.back()[titles.at(i)] = fields[i];
  }
  return rows;
}

}  // namespace vitrail::testing
