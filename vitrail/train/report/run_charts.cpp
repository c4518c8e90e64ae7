// SPDX-License-Identifier: Apache-2.0
// The curves of a run, from its metrics.csv, and numbers as text.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "vitrail/train/report/html_internal.h"

namespace vitrail::train {
namespace {

constexpr size_t kMinColumns = 9;   // columns of metrics.csv with one score
constexpr size_t kMaxPoints = 400;  // per curve, about the resolution of a chart

// The values of a row of metrics.csv that the charts show; NaN for an empty field.
struct Point {
  double epoch, loss, rate, minutes;
  std::vector<double> scores;
};
using Value = std::function<double(const Point&)>;
using Points = std::map<std::string, std::vector<Point>>;  // by event: "train", "val", "val_ema", "start"

Points read_metrics(const std::filesystem::path& csv) {
  Points points;
  std::ifstream file(csv);
  size_t columns = 0;  // without the event
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string event, field;
    std::getline(fields, event, ',');
    std::vector<double> values;
    while (std::getline(fields, field, ','))
      values.push_back(field.empty() ? std::nan("") : std::strtod(field.c_str(), nullptr));
    if (event == "event" && values.size() >= kMinColumns) columns = values.size();
    if (event == "event" || columns == 0 || values.size() != columns) continue;
    const double rate = values[columns - 5], seconds = values[columns - 1];
    const std::vector<double> scores(values.begin() + 3, values.end() - 5);
    points[event].push_back({values[1], values[2], rate, seconds / 60, scores});
  }
  return points;
}

// Samples the points evenly down to kMaxPoints.
Curve make_curve(const std::string& name, const std::vector<Point>& points, const Value& x, const Value& y) {
  Curve curve{name, {}, {}, false};
  const size_t stride = points.size() / kMaxPoints + 1;
  for (size_t i = 0; i < points.size(); i += stride) {
    curve.x.push_back(x(points[i]));
    curve.y.push_back(y(points[i]));
  }
  if (stride > 1 && (points.size() - 1) % stride != 0) {  // the last point is the result
    curve.x.push_back(x(points.back()));
    curve.y.push_back(y(points.back()));
  }
  return curve;
}

bool has_values(const Curve& curve) {
  return std::ranges::any_of(curve.y, [](double y) { return std::isfinite(y); });
}

// `validates`: also of held-out images, and of the weights before training as a line over the others.
std::vector<Curve> curves_of(const Points& points, const Value& x, const Value& y, bool validates = true) {
  std::vector<Curve> curves;
  for (const auto& [event, name] : {std::pair{"train", "training"}, std::pair{"val", "validation"},
                                    std::pair{"val_ema", "validation, EMA weights"}}) {
    if (const auto found = points.find(event); found != points.end() && (validates || event == std::string("train")))
      curves.push_back(make_curve(name, found->second, x, y));
  }
  const auto start = points.find("start");
  if (validates && start != points.end() && !curves.empty() && !curves.back().x.empty()) {
    const double value = y(start->second.front());
    curves.push_back({"before training", {0, curves.back().x.back()}, {value, value}, true});
  }
  std::erase_if(curves, [](const Curve& curve) { return !has_values(curve); });
  return curves;
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

std::vector<Chart> metric_charts(const std::filesystem::path& csv, const Metrics& metrics) {
  const Points points = read_metrics(csv);
  const Value epoch = [](const Point&point) { return point.epoch; },
              minutes = [](const Point&point) { return point.minutes; };
  std::vector<Chart> charts{{"Loss", "epoch", false,
                             curves_of(
                                 points, epoch, [](const Point& point) { return point.loss; }, metrics.validates_loss),
                             metrics.loss_note}};
  for (size_t i = 0; i < metrics.each.size(); ++i) {
    const Metric& metric = metrics.each[i];
    if (metric.chart.empty()) continue;
    const Value score = [i](const Point& point) { return i < point.scores.size() ? point.scores[i] : std::nan(""); };
    charts.push_back({metric.chart, "epoch", true, curves_of(points, epoch, score), metric.note});
    if (i == 0) charts.push_back({metric.chart + " against time", "minutes", true, curves_of(points, minutes, score)});
  }
  std::vector<Curve> rate;
  if (const auto found = points.find("train"); found != points.end())
    rate.push_back(make_curve("learning rate", found->second, epoch, [](const Point& point) { return point.rate; }));
  charts.push_back({"Learning rate", "epoch", false, rate});
  return charts;
}

void remove_empty(std::vector<Chart>& charts) { std::erase_if(charts, is_empty); }

}  // namespace vitrail::train
