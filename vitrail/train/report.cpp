// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/report.h"

#include <algorithm>
#include <cstdio>

#include "vitrail/base/error.h"
#include "vitrail/image/encode.h"
#include "vitrail/train/html_internal.h"

namespace vitrail::train {
namespace {

std::string base64(const std::vector<uint8_t>& bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < count ? bytes[i + k] : 0);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kLetters[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string render_mistake(const Mistake& mistake) {
  const bool small = std::max(mistake.picture.width, mistake.picture.height) <= 96;
  return str("<figure><img", small ? " class=\"small\"" : "", " src=\"", picture_uri(mistake.picture), "\" alt=\"",
             escaped(mistake.truth), "\" title=\"", escaped(mistake.path), "\"><figcaption><span class=\"wrong\">",
             escaped(mistake.answer), "</span> ", percent(mistake.confidence, 0), "<small>is ", escaped(mistake.truth),
             " (", percent(mistake.truth_confidence), ")</small></figcaption></figure>\n");
}

}  // namespace

std::string escaped(const std::string& text) {
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

std::string picture_uri(const image::Image& picture) {
  return "data:image/png;base64," + base64(image::encode_png(picture));
}

std::string percent(double fraction, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %%", digits, 100 * fraction);
  return text;
}

std::string render_report(const Report& report) {
  std::string page =
      str("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n",
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>", escaped(report.title),
          "</title>\n<style>", kReportStyle, "</style></head>\n<body><main>\n<h1>", escaped(report.title),
          "</h1>\n<p class=\"sub\">", escaped(report.subtitle), "</p>\n<div class=\"facts\">\n");
  for (const auto& [name, value] : report.facts)
    page += "<div class=\"fact\"><b>" + escaped(value) + "</b><span>" + escaped(name) + "</span></div>\n";
  page += "</div>\n<h2>Curves</h2>\n<div class=\"charts\">\n";
  for (const Chart& chart : report.charts) page += render_chart(chart);
  page += "</div>\n";
  if (!report.confusion.empty()) {
    page += "<h2>Confusion: " + escaped(report.confusion_of) + "</h2>\n" + render_confusion(report);
  }
  if (!report.mistakes.empty()) {
    page +=
        "<h2>Worst mistakes</h2>\n<p class=\"sub\">The images whose true class the model found least probable.</p>\n";
    page += "<div class=\"mistakes\">\n";
    for (const Mistake& mistake : report.mistakes) page += render_mistake(mistake);
    page += "</div>\n";
  }
  page += "<details><summary>Recipe</summary><pre>" + escaped(report.recipe) + "</pre></details>\n";
  return page + "</main></body></html>\n";
}

}  // namespace vitrail::train
