// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/train/report/html_internal.h"

namespace vitrail::train {
namespace {

constexpr double kWidth = 560, kHeight = 280;                          // size of a chart in SVG units
constexpr double kMinLeft = 52, kRight = 12, kTop = 10, kBottom = 40;  // margins around the plot
constexpr double kDigit = 7;                                           // width of a digit at the axes
constexpr size_t kMinSmoothed = 30;                                    // values of a curve that is smoothed
constexpr size_t kMaxClassesInTable = 40;                              // more classes are shown as a list of pairs
constexpr size_t kMaxPairs = 30;

std::string decimal(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// Returns a tick distance of 1, 2 or 5 times a power of ten that gives about `count` ticks.
double tick_distance(double span, int count) {
  const double rough = span / count, power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

// Decimal places of tick labels.
int tick_digits(double step) { return std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9))); }

// A linear map from the values [low, high] to the SVG coordinates [from, to].
struct Axis {
  double low = 0, high = 1, step = 0.2, from = 0, to = 1;  // step: distance of ticks
  double position(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

// `round_to_ticks`: widen the range to multiples of the tick distance.
Axis make_axis(double min, double max, double from, double to, bool round_to_ticks) {
  if (!(min <= max)) min = 0, max = 1;  // no data
  if (max - min < 1e-12) min -= 0.5, max += 0.5;
  Axis axis{min, max, tick_distance(max - min, 5), from, to};
  if (!round_to_ticks) return axis;
  axis.low = std::floor(min / axis.step) * axis.step;
  axis.high = std::ceil(max / axis.step) * axis.step;
  return axis;
}

// The ticks of the y axis: values and their labels.
std::vector<std::pair<double, std::string>> y_ticks(const Chart& chart, const Axis& y) {
  std::vector<std::pair<double, std::string>> ticks;
  for (double value = y.low; value <= y.high + y.step / 2; value += y.step) {
    ticks.emplace_back(value,
                       chart.percent ? percent(value, tick_digits(100 * y.step)) : decimal(value, tick_digits(y.step)));
  }
  return ticks;
}

// The margin at the left, which has the longest label of the y axis.
double left_margin(const Chart& chart, const Axis& y) {
  double margin = kMinLeft;
  for (const auto& [value, label] : y_ticks(chart, y))
    margin = std::max(margin, kDigit * static_cast<double>(label.size()) + 10);
  return margin;
}

void draw_grid(std::string& svg, const Chart& chart, const Axis& x, const Axis& y) {
  for (const auto& [value, label] : y_ticks(chart, y)) {
    const std::string y_position = decimal(y.position(value), 1);
    svg += str("<line class=\"grid\" x1=\"", x.from, "\" x2=\"", kWidth - kRight, "\" y1=\"", y_position, "\" y2=\"",
               y_position, "\"/><text x=\"", x.from - 8, "\" y=\"", y_position,
               "\" text-anchor=\"end\" dominant-baseline=\"middle\">", label, "</text>\n");
  }
  for (double value = std::ceil(x.low / x.step) * x.step; value <= x.high + 1e-9; value += x.step) {
    const std::string label = decimal(value, tick_digits(x.step));
    const double last = kWidth - kDigit * static_cast<double>(label.size()) / 2;  // where it is whole
    svg += str("<text x=\"", decimal(std::min(x.position(value), last), 1), "\" y=\"", kHeight - kBottom + 18,
               "\" text-anchor=\"middle\">", label, "</text>\n");
  }
  svg += str("<text x=\"", (x.from + kWidth - kRight) / 2, "\" y=\"", kHeight - 4, "\" text-anchor=\"middle\">",
             escape_html(chart.x_label), "</text>\n");
}

// The mean of each value and its neighbours, a fifteenth of the curve to each side.  Not a number where none is finite.
Curve smoothed(const Curve& curve) {
  Curve result{curve.name, curve.x, {}};
  const size_t reach = curve.y.size() / 15;
  for (size_t i = 0; i < curve.y.size(); ++i) {
    double sum = 0, count = 0;
    const size_t side = std::min({reach, i, curve.y.size() - 1 - i});  // as far to the left as to the right
    for (size_t j = i - side; j <= i + side; ++j) {
      if (std::isfinite(curve.y[j])) sum += curve.y[j], ++count;
    }
    result.y.push_back(sum / count);
  }
  return result;
}

std::string polyline_points(const Curve& curve, const Axis& x, const Axis& y) {
  std::string points;
  for (size_t i = 0; i < curve.x.size(); ++i) {
    if (!std::isfinite(curve.y[i])) continue;
    points += decimal(x.position(curve.x[i]), 1) + "," + decimal(y.position(curve.y[i]), 1) + " ";
  }
  return points;
}

void draw_curve(std::string& svg, const Curve& curve, size_t color, const Axis& x, const Axis& y) {
  if (curve.x.size() >= kMinSmoothed) {
    svg +=
        str("<polyline class=\"smooth s", color % 4, "\" points=\"", polyline_points(smoothed(curve), x, y), "\"/>\n");
  }
  svg += str("<polyline class=\"curve ", curve.dashed ? "dashed " : "", "s", color % 4, "\" points=\"",
             polyline_points(curve, x, y), "\"/>\n");
  if (curve.x.size() > 60) return;  // a few values also get a dot each, with a tooltip
  for (size_t i = 0; i < curve.x.size(); ++i) {
    if (!std::isfinite(curve.y[i])) continue;
    svg += str("<circle class=\"f", color % 4, "\" r=\"2.5\" cx=\"", decimal(x.position(curve.x[i]), 1), "\" cy=\"",
               decimal(y.position(curve.y[i]), 1), "\"><title>", escape_html(curve.name), ": ", curve.y[i], " at ",
               curve.x[i], "</title></circle>\n");
  }
}

std::string confusion_table(const Report& report) {
  std::string table = "<div class=\"card scroll\"><table class=\"confusion\"><thead><tr><th></th>";
  for (const std::string& name : report.classes) table += "<th>" + escape_html(name) + "</th>";
  table += "</tr></thead><tbody>\n";
  for (size_t label = 0; label < report.confusion.size(); ++label) {
    const std::vector<int64_t>& row = report.confusion[label];
    int64_t total = 0;
    for (const int64_t count : row) total += count;
    table += "<tr><th>" + escape_html(report.classes[label]) + "</th>";
    for (size_t prediction = 0; prediction < row.size(); ++prediction) {
      const double fraction = total ? static_cast<double>(row[prediction]) / static_cast<double>(total) : 0;
      // The square root makes small fractions visible beside the diagonal.
      table += str("<td", row[prediction] == 0 ? " class=\"zero\"" : "", " style=\"background:rgba(var(--heat),",
                   decimal(0.75 * std::sqrt(fraction), 3), ")\" title=\"", escape_html(report.classes[label]),
                   " predicted as ", escape_html(report.classes[prediction]), ": ", percent(fraction), "\">",
                   row[prediction], "</td>");
    }
    table += "</tr>\n";
  }
  return table + "</tbody></table></div>\n<p class=\"sub\">Rows are labels, columns are predictions.</p>\n";
}

}  // namespace

std::string render_chart(const Chart& chart) {
  constexpr double kMax = std::numeric_limits<double>::max();
  double x_low = kMax, x_high = -kMax, y_low = kMax, y_high = -kMax;
  for (const Curve& curve : chart.curves) {
    for (size_t i = 0; i < curve.x.size(); ++i) {
      if (!std::isfinite(curve.y[i])) continue;
      x_low = std::min(x_low, curve.x[i]), x_high = std::max(x_high, curve.x[i]);
      y_low = std::min(y_low, curve.y[i]), y_high = std::max(y_high, curve.y[i]);
    }
  }
  if (chart.percent && y_high - y_low < 0.01)
    y_low = std::max(0.0, y_low - 0.05), y_high = std::min(1.0, y_high + 0.05);
  const Axis y = make_axis(y_low, y_high, kHeight - kBottom, kTop, true);
  const Axis x = make_axis(x_low, x_high, left_margin(chart, y), kWidth - kRight, false);
  std::string svg = str("<div class=\"card\"><h3>", escape_html(chart.title), "</h3>\n<svg viewBox=\"0 0 ", kWidth, " ",
                        kHeight, "\" role=\"img\" aria-label=\"", escape_html(chart.title), "\">\n");
  draw_grid(svg, chart, x, y);
  for (size_t i = 0; i < chart.curves.size(); ++i) draw_curve(svg, chart.curves[i], i, x, y);
  svg += "</svg>\n<div class=\"legend\">";
  for (size_t i = 0; i < chart.curves.size(); ++i)
    svg += str("<span><i class=\"b", i % 4, "\"></i>", escape_html(chart.curves[i].name), "</span>");
  svg += "</div>";
  if (!chart.note.empty()) svg += "\n<p class=\"note\">" + escape_html(chart.note) + "</p>";
  return svg + "</div>\n";
}

std::string render_confusion(const Report& report) {
  if (report.classes.size() <= kMaxClassesInTable) return confusion_table(report);
  struct Pair {
    int64_t count;
    size_t label, prediction;
  };
  std::vector<Pair> pairs;
  for (size_t label = 0; label < report.confusion.size(); ++label) {
    for (size_t prediction = 0; prediction < report.confusion[label].size(); ++prediction) {
      if (label != prediction && report.confusion[label][prediction] > 0)
        pairs.push_back({report.confusion[label][prediction], label, prediction});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
  if (pairs.size() > kMaxPairs) pairs.resize(kMaxPairs);
  std::string list = "<ol class=\"pairs\">\n";
  for (const Pair& pair : pairs) {
    list += str("<li>", escape_html(report.classes[pair.label]), " predicted as ",
                escape_html(report.classes[pair.prediction]), ": ", pair.count, "</li>\n");
  }
  return list + "</ol>\n";
}

}  // namespace vitrail::train
