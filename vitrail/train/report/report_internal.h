// SPDX-License-Identifier: Apache-2.0
#pragma once
// The HTML report of a run: one self-contained file.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/metrics/classification_report.h"
#include "vitrail/image/image.h"

namespace vitrail::train {

struct Curve {
  std::string name;
  std::vector<double> x, y;
  bool dashed = false;
};

struct Chart {
  std::string title, x_label;
  bool percent = false;  // y is a fraction, shown in percent
  std::vector<Curve> curves;
  std::string note = {};  // how the curves should change
};

// A misclassified image, for display.
struct MisclassifiedImage {
  std::string path, label, prediction;                       // label, prediction: class names
  double prediction_probability = 0, label_probability = 0;  // softmax
  image::Image thumbnail;
};

// A row of the table of classes.
struct ClassRow {
  std::string name;
  int64_t training_images = 0;
  data::ClassMetrics metrics;
  std::optional<double> average_precision = {};  // for images with several labels
};

// Images under a title: "Masks: the objects, and …"
struct Gallery {
  std::string title;
  std::vector<image::Image> images;
};

struct Report {
  std::string title, subtitle;
  std::vector<std::pair<std::string, std::string>> facts;  // "top-1 on the test images" → "88.1 %"
  std::vector<Chart> charts;
  std::vector<Gallery> galleries;
  std::vector<ClassRow> class_rows;
  bool shows_average_precision = false;           // a column of class_rows
  std::vector<std::string> classes;               // names by index
  std::vector<std::vector<int64_t>> confusion;    // [label][prediction]: numbers of images
  std::string confusion_of;                       // what was evaluated: "10,000 test images"
  std::vector<MisclassifiedImage> misclassified;  // worst first
  std::string recipe;                             // JSON, collapsed by default
  nlohmann::ordered_json summary;                 // what summary.json has beside the entries of any run, or null
  // "command" → "vitrail train …", "processor" → …
  std::vector<std::pair<std::string, std::string>> environment;
};

// Renders the page.  Styles, SVG charts and images are embedded, there are no scripts, and colours follow the reader's
// light or dark setting.
std::string render_report(const Report& report);

}  // namespace vitrail::train
