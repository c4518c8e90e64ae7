// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/train/html_internal.h"

namespace vitrail::train {
namespace {

constexpr double kWidth = 560, kHeight = 280, kLeft = 52, kRight = 12, kTop = 10, kBottom = 40;
constexpr size_t kClassesInTable = 40, kPairs = 30;

std::string decimal(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// Round steps of 1, 2 or 5 times a power of ten, about `count` of them.
double round_step(double span, int count) {
  const double rough = span / count, power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

int digits_of(double step) { return std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9))); }

// A linear axis from round numbers to pixels.
struct Axis {
  double low = 0, high = 1, step = 0.2, from = 0, to = 1;
  double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

Axis axis(double least, double most, double from, double to, bool snap) {
  if (!(least <= most)) least = 0, most = 1;
  if (most - least < 1e-12) least -= 0.5, most += 0.5;
  Axis result{least, most, round_step(most - least, 5), from, to};
  if (!snap) return result;
  result.low = std::floor(least / result.step) * result.step;
  result.high = std::ceil(most / result.step) * result.step;
  return result;
}

void draw_grid(std::string& svg, const Chart& chart, const Axis& x, const Axis& y) {
  for (double value = y.low; value <= y.high + y.step / 2; value += y.step) {
    const std::string at = decimal(y.at(value), 1);
    svg +=
        str("<line class=\"grid\" x1=\"", kLeft, "\" x2=\"", kWidth - kRight, "\" y1=\"", at, "\" y2=\"", at,
            "\"/><text x=\"", kLeft - 8, "\" y=\"", at, "\" text-anchor=\"end\" dominant-baseline=\"middle\">",
            chart.percent ? percent(value, digits_of(100 * y.step)) : decimal(value, digits_of(y.step)), "</text>\n");
  }
  for (double value = std::ceil(x.low / x.step) * x.step; value <= x.high + 1e-9; value += x.step) {
    svg += str("<text x=\"", decimal(x.at(value), 1), "\" y=\"", kHeight - kBottom + 18, "\" text-anchor=\"middle\">",
               decimal(value, digits_of(x.step)), "</text>\n");
  }
  svg += str("<text x=\"", (kLeft + kWidth - kRight) / 2, "\" y=\"", kHeight - 4, "\" text-anchor=\"middle\">",
             escaped(chart.x_label), "</text>\n");
}

void draw_curve(std::string& svg, const Curve& curve, size_t color, const Axis& x, const Axis& y) {
  std::string points;
  for (size_t i = 0; i < curve.x.size(); ++i) {
    if (!std::isfinite(curve.y[i])) continue;
    points += decimal(x.at(curve.x[i]), 1) + "," + decimal(y.at(curve.y[i]), 1) + " ";
  }
  svg += str("<polyline class=\"curve s", color % 4, "\" points=\"", points, "\"/>\n");
  if (curve.x.size() > 60) return;  // a dot a value, with the value as its tooltip, while they can be told apart
  for (size_t i = 0; i < curve.x.size(); ++i) {
    if (!std::isfinite(curve.y[i])) continue;
    svg += str("<circle class=\"f", color % 4, "\" r=\"2.5\" cx=\"", decimal(x.at(curve.x[i]), 1), "\" cy=\"",
               decimal(y.at(curve.y[i]), 1), "\"><title>", escaped(curve.name), ": ", curve.y[i], " at ", curve.x[i],
               "</title></circle>\n");
  }
}

std::string confusion_table(const Report& report) {
  std::string table = "<div class=\"card scroll\"><table class=\"confusion\"><thead><tr><th></th>";
  for (const std::string& name : report.classes) table += "<th>" + escaped(name) + "</th>";
  table += "</tr></thead><tbody>\n";
  for (size_t truth = 0; truth < report.confusion.size(); ++truth) {
    const std::vector<int64_t>& row = report.confusion[truth];
    int64_t total = 0;
    for (const int64_t count : row) total += count;
    table += "<tr><th>" + escaped(report.classes[truth]) + "</th>";
    for (size_t answer = 0; answer < row.size(); ++answer) {
      const double share = total ? static_cast<double>(row[answer]) / static_cast<double>(total) : 0;
      // The square root lets small shares be seen beside the diagonal's.
      table += str("<td", row[answer] == 0 ? " class=\"zero\"" : "", " style=\"background:rgba(var(--heat),",
                   decimal(0.75 * std::sqrt(share), 3), ")\" title=\"", escaped(report.classes[truth]), " taken for ",
                   escaped(report.classes[answer]), ": ", percent(share), "\">", row[answer], "</td>");
    }
    table += "</tr>\n";
  }
  return table +
         "</tbody></table></div>\n<p class=\"sub\">Rows are the true classes, columns the model's answers.</p>\n";
}

}  // namespace

std::string render_chart(const Chart& chart) {
  constexpr double kMost = std::numeric_limits<double>::max();
  double x_low = kMost, x_high = -kMost, y_low = kMost, y_high = -kMost;
  for (const Curve& curve : chart.curves) {
    for (size_t i = 0; i < curve.x.size(); ++i) {
      if (!std::isfinite(curve.y[i])) continue;
      x_low = std::min(x_low, curve.x[i]), x_high = std::max(x_high, curve.x[i]);
      y_low = std::min(y_low, curve.y[i]), y_high = std::max(y_high, curve.y[i]);
    }
  }
  const Axis x = axis(x_low, x_high, kLeft, kWidth - kRight, false);
  const Axis y = axis(y_low, y_high, kHeight - kBottom, kTop, true);
  std::string svg = str("<div class=\"card\"><h3>", escaped(chart.title), "</h3>\n<svg viewBox=\"0 0 ", kWidth, " ",
                        kHeight, "\" role=\"img\" aria-label=\"", escaped(chart.title), "\">\n");
  draw_grid(svg, chart, x, y);
  for (size_t i = 0; i < chart.curves.size(); ++i) draw_curve(svg, chart.curves[i], i, x, y);
  svg += "</svg>\n<div class=\"legend\">";
  for (size_t i = 0; i < chart.curves.size(); ++i)
    svg += str("<span><i class=\"b", i % 4, "\"></i>", escaped(chart.curves[i].name), "</span>");
  return svg + "</div></div>\n";
}

std::string render_confusion(const Report& report) {
  if (report.classes.size() <= kClassesInTable) return confusion_table(report);
  struct Pair {
    int64_t count;
    size_t truth, answer;
  };
  std::vector<Pair> pairs;
  for (size_t truth = 0; truth < report.confusion.size(); ++truth) {
    for (size_t answer = 0; answer < report.confusion[truth].size(); ++answer) {
      if (truth != answer && report.confusion[truth][answer] > 0)
        pairs.push_back({report.confusion[truth][answer], truth, answer});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
  if (pairs.size() > kPairs) pairs.resize(kPairs);
  std::string list = "<ol class=\"pairs\">\n";
  for (const Pair& pair : pairs) {
    list += str("<li>", escaped(report.classes[pair.truth]), " taken for ", escaped(report.classes[pair.answer]), ": ",
                pair.count, "</li>\n");
  }
  return list + "</ol>\n";
}

}  // namespace vitrail::train
