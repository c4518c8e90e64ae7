// SPDX-License-Identifier: Apache-2.0
// The curves of a run, from its metrics.csv, and numbers as text.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "vitrail/train/report/html_internal.h"

namespace vitrail::train {
namespace {

constexpr size_t kMinColumns = 9;   // columns of metrics.csv with one score
constexpr size_t kMaxPoints = 400;  // per curve, about the resolution of a chart

// The values of a row of metrics.csv that the charts show.
struct Point {
  double epoch, loss, score, rate, minutes;
};

// The rows of metrics.csv by event: "train", "val", "val_ema".
std::map<std::string, std::vector<Point>> read_metrics(const std::filesystem::path& csv) {
  std::map<std::string, std::vector<Point>> points;
  std::ifstream file(csv);
  size_t columns = 0;  // without the event
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string event, field;
    std::getline(fields, event, ',');
    std::vector<double> values;
    while (std::getline(fields, field, ',')) values.push_back(std::strtod(field.c_str(), nullptr));
    if (event == "event" && values.size() >= kMinColumns) columns = values.size();
    if (event == "event" || columns == 0 || values.size() != columns) continue;
    const double rate = values[columns - 5], seconds = values[columns - 1];
    points[event].push_back({values[1], values[2], values[3], rate, seconds / 60});
  }
  return points;
}

// Samples the points evenly down to kMaxPoints.
Curve make_curve(const std::string& name, const std::vector<Point>& points, double Point::*x, double Point::*y) {
  Curve curve{name, {}, {}, false};
  const size_t stride = points.size() / kMaxPoints + 1;
  for (size_t i = 0; i < points.size(); i += stride) {
    curve.x.push_back(points[i].*x);
    curve.y.push_back(points[i].*y);
  }
  if (stride > 1 && (points.size() - 1) % stride != 0) {  // the last point is the result
    curve.x.push_back(points.back().*x);
    curve.y.push_back(points.back().*y);
  }
  return curve;
}

// A chart needs a curve, which needs two points.
bool is_empty(const Chart& chart) {
  return std::none_of(chart.curves.begin(), chart.curves.end(), [](const Curve& curve) {
    return std::count_if(curve.y.begin(), curve.y.end(), [](double y) { return std::isfinite(y); }) >= 2;
  });
}

}  // namespace

std::string with_thousands_separators(int64_t number) {
  std::string text = std::to_string(number);
  for (auto i = static_cast<int64_t>(text.size()) - 3; i > 0; i -= 3) text.insert(static_cast<size_t>(i), ",");
  return text;
}

std::string duration_text(double seconds) {
  char text[32];
  const auto total = static_cast<int64_t>(seconds + 0.05);  // 59.97 is 1 min, as 59.9 s is in tenths
  if (total >= 3600) {
    std::snprintf(text, sizeof text, "%d h %02d min", static_cast<int>(total / 3600),
                  static_cast<int>(total / 60 % 60));
  } else if (total >= 60) {
    std::snprintf(text, sizeof text, "%d min %02d s", static_cast<int>(total / 60), static_cast<int>(total % 60));
  } else {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  }
  return text;
}

std::vector<Chart> metric_charts(const std::filesystem::path& csv, const std::string& metric, bool of_training) {
  const auto points = read_metrics(csv);
  auto curves = [&](double Point::*x, double Point::*y) {
    std::vector<Curve> shown;
    for (const auto& [event, name] : {std::pair{"train", "training"}, std::pair{"val", "validation"},
                                      std::pair{"val_ema", "validation, EMA weights"}}) {
      if (const auto found = points.find(event); found != points.end())
        shown.push_back(make_curve(name, found->second, x, y));
    }
    const auto start = points.find("start");  // a line over the epochs
    if (start != points.end() && !shown.empty() && !shown.back().x.empty()) {
      const double value = start->second.front().*y;
      shown.push_back({"before training", {0, shown.back().x.back()}, {value, value}, true});
    }
    if (!of_training && y == &Point::score) std::erase_if(shown, [](const Curve& c) { return c.name == "training"; });
    return shown;
  };
  std::vector<Curve> rate;
  if (const auto found = points.find("train"); found != points.end())
    rate.push_back(make_curve("learning rate", found->second, &Point::epoch, &Point::rate));
  return {{"Loss", "epoch", false, curves(&Point::epoch, &Point::loss)},
          {metric, "epoch", true, curves(&Point::epoch, &Point::score)},
          {metric + " against time", "minutes", true, curves(&Point::minutes, &Point::score)},
          {"Learning rate", "epoch", false, rate}};
}

void remove_empty(std::vector<Chart>& charts) { std::erase_if(charts, is_empty); }

}  // namespace vitrail::train
