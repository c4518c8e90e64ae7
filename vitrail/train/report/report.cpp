// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/report/report_internal.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "vitrail/base/base64_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/image/encode.h"
#include "vitrail/train/report/html_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kSmallImage = 96;  // pixels; smaller images are shown enlarged

std::string render_misclassified(const MisclassifiedImage& m) {
  const bool small = std::max(m.thumbnail.width, m.thumbnail.height) <= kSmallImage;
  return str("<figure><img", small ? " class=\"small\"" : "", " src=\"", data_uri(m.thumbnail), "\" alt=\"",
             escape_html(m.label), "\" title=\"", escape_html(m.path), "\"><figcaption><span class=\"wrong\">",
             escape_html(m.prediction), "</span> ", percent(m.prediction_probability, 0), "<small>is ",
             escape_html(m.label), " (", percent(m.label_probability), ")</small></figcaption></figure>\n");
}

std::string render_images(const std::string& title, const std::vector<image::Image>& images) {
  if (images.empty()) return "";
  std::string html = "<h2>" + title + "</h2>\n<div class=\"images\">\n";
  for (const image::Image& image : images) {
    const bool small = std::max(image.width, image.height) <= kSmallImage;
    html += str("<img", small ? " class=\"small\"" : "", " src=\"", data_uri(image), "\" alt=\"\">\n");
  }
  return html + "</div>\n";
}

std::string fraction_cell(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "<td>%.4f</td>", value);
  return text;
}

std::string bar_cell(double fraction) {
  return str("<td class=\"bar\"><i style=\"width:", static_cast<int>(std::lround(100 * fraction)), "%\"></i></td>");
}

std::string average_precision_cell(const Report& report, const ClassRow& row) {
  if (!report.shows_average_precision) return "";
  return row.average_precision ? fraction_cell(*row.average_precision) : "<td></td>";  // no images of the class
}

// The column of training images is left out if there are none.
std::string render_classes(const Report& report) {
  if (report.class_rows.empty()) return "";
  const bool trained = std::any_of(report.class_rows.begin(), report.class_rows.end(),
                                   [](const ClassRow& row) { return row.training_images > 0; });
  std::string html = str("<h2>Classes: ", escape_html(report.confusion_of),
                         "</h2>\n<div class=\"scroll\"><table class=\"classes\"><tr><th>class</th>",
                         trained ? "<th>training images</th>" : "", "<th>images</th>",
                         report.shows_average_precision ? "<th>average precision</th>" : "",
                         "<th>precision</th><th>recall</th><th>F1</th><th></th></tr>\n");
  for (const ClassRow& row : report.class_rows) {
    html += str("<tr><td>", escape_html(row.name), "</td>", trained ? str("<td>", row.training_images, "</td>") : "",
                "<td>", row.metrics.support, "</td>", average_precision_cell(report, row),
                fraction_cell(row.metrics.precision), fraction_cell(row.metrics.recall), fraction_cell(row.metrics.f1),
                bar_cell(row.metrics.f1), "</tr>\n");
  }
  return html + "</table></div>\n";
}

std::string render_environment(const Report& report) {
  std::string html = "<table class=\"environment\">\n";
  for (const auto& [name, value] : report.environment)
    html += "<tr><td>" + escape_html(name) + "</td><td>" + escape_html(value) + "</td></tr>\n";
  return html + "</table>\n";
}

}  // namespace

std::string escape_html(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string data_uri(const image::Image& image) {
  const std::vector<uint8_t> png = image::encode_png(image), jpeg = image::encode_jpeg(image);
  const bool is_png = png.size() <= jpeg.size();
  return str("data:image/", is_png ? "png" : "jpeg", ";base64,",
             to_base64(std::as_bytes(std::span(is_png ? png : jpeg))));
}

std::string percent(double fraction, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %%", digits, 100 * fraction);
  return text;
}

std::string page_begin(const std::string& title, const std::string& style) {
  return str("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n",
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>", escape_html(title),
             "</title>\n<style>", kReportStyle, style, "</style></head>\n<body><main>\n<h1>", escape_html(title),
             "</h1>\n");
}

std::string render_report(const Report& report) {
  std::string page = page_begin(report.title);
  page += "<p class=\"sub\">" + escape_html(report.subtitle) + "</p>\n<div class=\"facts\">\n";
  for (const auto& [name, value] : report.facts)
    page += "<div class=\"fact\"><b>" + escape_html(value) + "</b><span>" + escape_html(name) + "</span></div>\n";
  page += "</div>\n";
  if (!report.charts.empty()) page += "<h2>Curves</h2>\n<div class=\"charts\">\n";
  for (const Chart& chart : report.charts) page += render_chart(chart);
  if (!report.charts.empty()) page += "</div>\n";
  for (const Gallery& gallery : report.galleries) page += render_images(gallery.title, gallery.images);
  page += render_classes(report);
  if (!report.confusion.empty()) {
    page += "<h2>Confusion: " + escape_html(report.confusion_of) + "</h2>\n" + render_confusion(report);
  }
  if (!report.misclassified.empty()) {
    page +=
        "<h2>Worst misclassifications</h2>\n<p class=\"sub\">The images whose label got the lowest probability.</p>\n";
    page += "<div class=\"misclassified\">\n";
    for (const MisclassifiedImage& image : report.misclassified) page += render_misclassified(image);
    page += "</div>\n";
  }
  if (!report.recipe.empty())
    page += "<details><summary>Recipe</summary><pre>" + escape_html(report.recipe) + "</pre></details>\n";
  page += render_environment(report);
  return page + kPageEnd;
}

}  // namespace vitrail::train
