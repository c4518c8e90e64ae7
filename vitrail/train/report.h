// SPDX-License-Identifier: Apache-2.0
#pragma once
// report.html: one self-contained file about a run.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/image/image.h"

namespace vitrail::train {

struct Curve {
  std::string name;
  std::vector<double> x, y;
};

struct Chart {
  std::string title, x_label, y_label;
  bool percent = false;  // y is a fraction
  std::vector<Curve> curves;
};

// An image that the model got wrong.
struct Mistake {
  std::string path, truth, answer;
  double confidence = 0;        // in the answer
  double truth_confidence = 0;  // in the true class
  image::Image picture;
};

struct Report {
  std::string title, subtitle;
  std::vector<std::pair<std::string, std::string>> facts;  // "Test top-1" → "88.1 %", shown first and large
  std::vector<Chart> charts;
  std::vector<std::string> classes;             // by index
  std::vector<std::vector<int64_t>> confusion;  // [truth][answer]
  std::string confusion_of;                     // "10,000 test images"
  std::vector<Mistake> mistakes;                // worst first
  std::string recipe;                           // JSON, shown folded
};

// The page: styles, SVG and pictures inside, no scripts from elsewhere; light and dark as the reader's system is.
std::string render_report(const Report& report);

}  // namespace vitrail::train
