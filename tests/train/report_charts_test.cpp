// SPDX-License-Identifier: Apache-2.0
// The exact drawing of charts and tables, and the page with all of its parts.
#include <cmath>
#include <limits>
#include <map>
#include <regex>
#include <set>

#include "tests/train/training_fixture.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/report/report_images_internal.h"

namespace vitrail::train {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// The plot is 496 units wide from 52 and 230 units high from 10; ticks are 0.5 apart on y and 1 on x.
TEST(ReportChart, IsDrawnToItsScales) {
  const std::string grid[] = {"240.0", "182.5", "125.0", "67.5", "10.0"};
  const char* const labels[] = {"1.0", "1.5", "2.0", "2.5", "3.0"};
  std::string expected =
      "<div class=\"card\"><h3>T&amp;</h3>\n<svg viewBox=\"0 0 560 280\" role=\"img\" aria-label=\"T&amp;\">\n";
  for (size_t i = 0; i < 5; ++i) {
    expected += "<line class=\"grid\" x1=\"52\" x2=\"548\" y1=\"" + grid[i] + "\" y2=\"" + grid[i] +
                "\"/><text x=\"44\" y=\"" + grid[i] + "\" text-anchor=\"end\" dominant-baseline=\"middle\">" +
                labels[i] + "</text>\n";
  }
  for (const auto& [x, label] :
       {std::pair{"52.0", "0"}, {"176.0", "1"}, {"300.0", "2"}, {"424.0", "3"}, {"548.0", "4"}})
    expected += str("<text x=\"", x, "\" y=\"258\" text-anchor=\"middle\">", label, "</text>\n");
  expected +=
      "<text x=\"300\" y=\"276\" text-anchor=\"middle\">epoch</text>\n"
      "<polyline class=\"curve s0\" points=\"52.0,240.0 176.0,10.0 548.0,125.0 \"/>\n"
      "<circle class=\"f0\" r=\"2.5\" cx=\"52.0\" cy=\"240.0\"><title>loss: 1 at 0</title></circle>\n"
      "<circle class=\"f0\" r=\"2.5\" cx=\"176.0\" cy=\"10.0\"><title>loss: 3 at 1</title></circle>\n"
      "<circle class=\"f0\" r=\"2.5\" cx=\"548.0\" cy=\"125.0\"><title>loss: 2 at 4</title></circle>\n"
      "<polyline class=\"curve s1\" points=\"300.0,182.5 \"/>\n"
      "<circle class=\"f1\" r=\"2.5\" cx=\"300.0\" cy=\"182.5\"><title>other: 1.5 at 2</title></circle>\n"
      "</svg>\n<div class=\"legend\"><span><i class=\"b0\"></i>loss</span><span><i class=\"b1\"></i>other</span>"
      "</div></div>\n";
  const Chart chart{"T&", "epoch", false, {{"loss", {0, 1, 4}, {1, 3, 2}}, {"other", {2, 9}, {1.5, kMissing}}}};
  EXPECT_EQ(render_chart(chart), expected);
}

// The texts at the ticks of the y axis, from below.
std::vector<std::string> y_labels(const std::string& svg) {
  std::vector<std::string> labels;
  const std::string begin = "dominant-baseline=\"middle\">";
  for (size_t at = svg.find(begin); at != svg.npos; at = svg.find(begin, at + 1)) {
    const size_t from = at + begin.size();
    labels.push_back(svg.substr(from, svg.find('<', from) - from));
  }
  return labels;
}

TEST(ReportChart, TicksAreOneTwoOrFiveTimesAPowerOfTen) {
  struct Case {
    double low, high;
    bool in_percent;
    std::vector<std::string> labels;
  };
  const std::vector<Case> cases{{0, 5, false, {"0", "1", "2", "3", "4", "5"}},
                                {0, 4.9, false, {"0", "1", "2", "3", "4", "5"}},
                                {0, 10, false, {"0", "2", "4", "6", "8", "10"}},
                                {0, 15, false, {"0", "5", "10", "15"}},
                                {0, 730, false, {"0", "200", "400", "600", "800"}},
                                {-30, 40, false, {"-40", "-20", "0", "20", "40"}},
                                {0, 0.0007, false, {"0.0000", "0.0002", "0.0004", "0.0006", "0.0008"}},
                                {7, 7, false, {"6.4", "6.6", "6.8", "7.0", "7.2", "7.4", "7.6"}},
                                {0.2, 0.9, true, {"20 %", "40 %", "60 %", "80 %", "100 %"}},
                                {0.312, 0.326, true, {"31.0 %", "31.5 %", "32.0 %", "32.5 %", "33.0 %"}},
                                {0.52, 0.525, true, {"45 %", "50 %", "55 %", "60 %"}},
                                {0.001, 0.002, true, {"0 %", "2 %", "4 %", "6 %"}},
                                {0.999, 0.9995, true, {"94 %", "96 %", "98 %", "100 %"}},
                                {kMissing, kMissing, false, {"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}}};
  for (const auto& [low, high, in_percent, labels] : cases) {
    const std::string svg = render_chart({"t", "x", in_percent, {{"c", {0, 1}, {low, high}}}});
    EXPECT_EQ(y_labels(svg), labels) << low << " to " << high;
  }
}

TEST(ReportChart, TheXAxisEndsWithTheValues) {
  const std::string svg = render_chart({"t", "x", false, {{"c", {3, 17}, {0, 5}}}});
  for (const char* text :
       {"<text x=\"122.9\" y=\"258\" text-anchor=\"middle\">5</text>",
        "<text x=\"300.0\" y=\"258\" text-anchor=\"middle\">10</text>",
        "<text x=\"477.1\" y=\"258\" text-anchor=\"middle\">15</text>", "points=\"52.0,240.0 548.0,10.0 \""}) {
    EXPECT_TRUE(contains(svg, text)) << text << "\n" << svg;
  }
  EXPECT_FALSE(contains(svg, ">0</text>\n<text x=\"52"));
  EXPECT_TRUE(contains(render_chart({"t", "x", false, {{"c", {4, 4.2}, {0, 5}}}}),
                       "<text x=\"176.0\" y=\"258\" text-anchor=\"middle\">4.05</text>"));
}

// A label has 7 units for each digit: the margin grows with the labels of y, and the last of x is moved to the left.
TEST(ReportChart, LabelsOfItsAxesAreWhole) {
  const std::string small = render_chart({"t", "x", false, {{"c", {0, 1}, {0, 0.0000004}}}});
  EXPECT_EQ(y_labels(small).back(), "0.0000004");
  EXPECT_TRUE(contains(small, "x1=\"73\"") && contains(small, "<text x=\"65\"")) << small;
  const std::string large = render_chart({"t", "x", false, {{"c", {0, 20000}, {0, 1}}}});
  EXPECT_TRUE(contains(large, "<text x=\"542.5\" y=\"258\" text-anchor=\"middle\">20000</text>")) << large;
}

TEST(ReportChart, ManyValuesAreSmoothedBehindTheCurve) {
  Curve curve{"c", {}, {}};
  for (int i = 0; i < 31; ++i) curve.x.push_back(i), curve.y.push_back(i % 2);
  const std::string svg = render_chart({"t", "x", false, {curve}});
  const size_t smooth = svg.find("class=\"smooth s0\""), raw = svg.find("class=\"curve s0\"");
  ASSERT_TRUE(smooth != svg.npos && smooth < raw) << svg;
  EXPECT_TRUE(contains(svg.substr(smooth, raw - smooth), "300.0,102.0 ")) << "0.6, the mean of 1, 0, 1, 0, 1";
  curve.x.resize(29), curve.y.resize(29);
  EXPECT_FALSE(contains(render_chart({"t", "x", false, {curve}}), "smooth"));
}

TEST(ReportChart, AFifthCurveHasTheFirstColourAgain) {
  Chart chart{"t", "x", false, {}};
  for (int i = 0; i < 6; ++i) chart.curves.push_back({"c" + std::to_string(i), {0, 1}, {0, 1}});
  const std::string svg = render_chart(chart);
  for (const char* part : {"<i class=\"b3\"></i>c3<", "<i class=\"b0\"></i>c4<", "<i class=\"b1\"></i>c5<"})
    EXPECT_TRUE(contains(svg, part)) << part;
  EXPECT_FALSE(contains(svg, "b4") || contains(svg, "s4") || contains(svg, "f4"));
}

TEST(ReportConfusion, CellsAreShadedByTheSquareRootOfTheirShare) {
  Report report;
  report.classes = {"a", "b<"};
  report.confusion = {{3, 1}, {0, 0}};
  EXPECT_EQ(render_confusion(report),
            "<div class=\"card scroll\"><table class=\"confusion\"><thead><tr><th></th><th>a</th><th>b&lt;</th></tr>"
            "</thead><tbody>\n"
            "<tr><th>a</th>"
            "<td style=\"background:rgba(var(--heat),0.650)\" title=\"a predicted as a: 75.0 %\">3</td>"
            "<td style=\"background:rgba(var(--heat),0.375)\" title=\"a predicted as b&lt;: 25.0 %\">1</td></tr>\n"
            "<tr><th>b&lt;</th>"
            "<td class=\"zero\" style=\"background:rgba(var(--heat),0.000)\" title=\"b&lt; predicted as a: 0.0 %\">0"
            "</td>"
            "<td class=\"zero\" style=\"background:rgba(var(--heat),0.000)\" title=\"b&lt; predicted as b&lt;: 0.0 %\">"
            "0</td></tr>\n"
            "</tbody></table></div>\n<p class=\"sub\">Rows are labels, columns are predictions.</p>\n");
}

// Equal pairs stay in the order of the labels; none are left out up to thirty.
TEST(ReportConfusion, EqualPairsAreInTheOrderOfTheLabels) {
  Report report;
  report.confusion.assign(41, std::vector<int64_t>(41));
  for (size_t c = 0; c < 41; ++c) report.classes.push_back(std::to_string(c));
  report.confusion[5][4] = report.confusion[4][5] = 2;
  report.confusion[40][0] = 3;
  report.confusion[7][7] = 9;
  EXPECT_EQ(render_confusion(report),
            "<ol class=\"pairs\">\n<li>40 predicted as 0: 3</li>\n<li>4 predicted as 5: 2</li>\n"
            "<li>5 predicted as 4: 2</li>\n</ol>\n");
}

TEST(ReportPage, HasItsPartsInOrder) {
  const image::Image small = image::make_image(3, 2, 3), large = image::make_image(97, 2, 3);
  Report report;
  report.title = "my run";
  report.subtitle = "vit on photos";
  report.facts = {{"top-1", "88.1 %"}, {"epochs", "3"}};
  report.charts = {{"Loss", "epoch", false, {{"training", {1, 2}, {1, 2}}}}};
  report.galleries = {{"Training images", {small}},
                      {"Training images as the model sees them", {large}},
                      {"Masks: the objects, and what a click in the middle of each gives", {small, large}}};
  report.class_rows = {{"cat", 7, {.precision = 0.5, .recall = 0.25, .f1 = 1.0 / 3, .support = 4}}};
  report.classes = {"cat", "dog"};
  report.confusion = {{1, 2}, {3, 4}};
  report.confusion_of = "10 test images";
  report.misclassified = {{.path = "photos/1.png",
                           .label = "cat",
                           .prediction = "dog",
                           .prediction_probability = 0.876,
                           .label_probability = 0.1234,
                           .thumbnail = large}};
  report.recipe = "{\"a\": 1}";
  report.environment = {{"command", "vitrail train"}, {"processor", "p"}};
  const std::string expected =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>my run</title>\n<style>" +
      std::string(kReportStyle) +
      "</style></head>\n<body><main>\n<h1>my run</h1>\n<p class=\"sub\">vit on photos</p>\n<div class=\"facts\">\n"
      "<div class=\"fact\"><b>88.1 %</b><span>top-1</span></div>\n"
      "<div class=\"fact\"><b>3</b><span>epochs</span></div>\n</div>\n"
      "<h2>Curves</h2>\n<div class=\"charts\">\n" +
      render_chart(report.charts[0]) +
      "</div>\n"
      "<h2>Training images</h2>\n<div class=\"images\">\n<img class=\"small\" src=\"" +
      data_uri(small) +
      "\" alt=\"\">\n</div>\n"
      "<h2>Training images as the model sees them</h2>\n<div class=\"images\">\n<img src=\"" +
      data_uri(large) +
      "\" alt=\"\">\n</div>\n"
      "<h2>Masks: the objects, and what a click in the middle of each gives</h2>\n<div class=\"images\">\n"
      "<img class=\"small\" src=\"" +
      data_uri(small) + "\" alt=\"\">\n<img src=\"" + data_uri(large) +
      "\" alt=\"\">\n</div>\n"
      "<h2>Classes: 10 test images</h2>\n<div class=\"scroll\"><table class=\"classes\"><tr><th>class</th>"
      "<th>training images</th><th>images</th><th>precision</th><th>recall</th><th>F1</th><th></th></tr>\n"
      "<tr><td>cat</td><td>7</td><td>4</td><td>0.5000</td><td>0.2500</td><td>0.3333</td>"
      "<td class=\"bar\"><i style=\"width:33%\"></i></td></tr>\n</table></div>\n"
      "<h2>Confusion: 10 test images</h2>\n" +
      render_confusion(report) +
      "<h2>Worst misclassifications</h2>\n<p class=\"sub\">The images whose label got the lowest probability.</p>\n"
      "<div class=\"misclassified\">\n<figure><img src=\"" +
      data_uri(large) +
      "\" alt=\"cat\" title=\"photos/1.png\"><figcaption><span class=\"wrong\">dog</span> 88 %<small>is cat (12.3 %)"
      "</small></figcaption></figure>\n</div>\n"
      "<details><summary>Recipe</summary><pre>{&quot;a&quot;: 1}</pre></details>\n"
      "<table class=\"environment\">\n<tr><td>command</td><td>vitrail train</td></tr>\n"
      "<tr><td>processor</td><td>p</td></tr>\n</table>\n</main></body></html>\n";
  EXPECT_EQ(render_report(report), expected);
}

TEST(ReportPage, ImagesAreEmbeddedAsPng) {
  const std::string uri = data_uri(image::make_image(1, 1, 3));
  // The signature and the header of 13 bytes: width and height 1, 8 bits, RGB.
  EXPECT_TRUE(uri.starts_with("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe")) << uri;
}

TEST(ReportPage, FractionsHaveTheDigitsAskedFor) {
  EXPECT_EQ(percent(0.98765), "98.8 %");
  EXPECT_EQ(percent(0.98765, 2), "98.77 %");
  EXPECT_EQ(percent(0.98765, 0), "99 %");
  EXPECT_EQ(percent(0.005, 3), "0.500 %");
  EXPECT_EQ(duration_text(3599.96), "1 h 00 min");
  EXPECT_EQ(duration_text(7199), "1 h 59 min");
  EXPECT_EQ(duration_text(0.04), "0.0 s");
  EXPECT_EQ(duration_text(59.94), "59.9 s");
  EXPECT_EQ(with_thousands_separators(10000), "10,000");
  EXPECT_EQ(with_thousands_separators(1000000), "1,000,000");
}

// The variables of a colour scheme: name to value.
std::map<std::string, std::string> variables_of(const std::string& css) {
  std::map<std::string, std::string> variables;
  const std::regex definition("--([a-z0-9]+):([^;]+);");
  for (std::sregex_iterator at(css.begin(), css.end(), definition), end; at != end; ++at)
    variables[(*at)[1]] = (*at)[2];
  return variables;
}

std::array<double, 3> rgb_of(const std::string& hex) {
  std::array<double, 3> rgb{};
  for (size_t i = 0; i < 3; ++i) rgb.at(i) = std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16);
  return rgb;
}

// Relative luminance and contrast as WCAG 2.1 defines them.
double luminance(const std::string& hex) {
  const double weights[] = {0.2126, 0.7152, 0.0722};
  double sum = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double c = rgb_of(hex).at(i) / 255;
    sum += weights[i] * (c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return sum;
}

double contrast(const std::string& a, const std::string& b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

TEST(ReportStyle, BothColourSchemesAreReadable) {
  const std::string css = kReportStyle;
  const size_t dark_at = css.find("@media (prefers-color-scheme: dark)"), rest = css.find("* {");
  ASSERT_NE(dark_at, css.npos);
  auto light = variables_of(css.substr(0, dark_at)), dark = variables_of(css.substr(dark_at, rest - dark_at));
  EXPECT_EQ(light.size(), 11u);
  for (auto* scheme : {&light, &dark}) {
    for (const char* name : {"page", "card", "ink", "soft", "line", "c0", "c1", "c2", "c3", "heat", "bad"})
      EXPECT_TRUE(scheme->contains(name)) << name;
    EXPECT_GE(contrast((*scheme)["ink"], (*scheme)["page"]), 12);
    EXPECT_GE(contrast((*scheme)["ink"], (*scheme)["card"]), 12);
    EXPECT_GE(contrast((*scheme)["soft"], (*scheme)["card"]), 4.5);
    EXPECT_GE(contrast((*scheme)["soft"], (*scheme)["page"]), 4.5);
    EXPECT_GE(contrast((*scheme)["bad"], (*scheme)["card"]), 4.5);
    std::set<std::string> curves;
    for (const char* curve : {"c0", "c1", "c2", "c3"}) {
      EXPECT_GE(contrast((*scheme)[curve], (*scheme)["card"]), 3) << curve;
      curves.insert((*scheme)[curve]);
    }
    EXPECT_EQ(curves.size(), 4u);
    const auto rgb = rgb_of((*scheme)["c0"]);
    EXPECT_EQ((*scheme)["heat"], str(rgb[0], ",", rgb[1], ",", rgb[2])) << "the first curve's colour";
  }
  EXPECT_GT(luminance(light["page"]), 0.8);
  EXPECT_LT(luminance(dark["page"]), 0.05);
  const std::regex use("var\\(--([a-z0-9]+)\\)");
  for (std::sregex_iterator at(css.begin(), css.end(), use), end; at != end; ++at)
    EXPECT_TRUE(light.contains((*at)[1])) << (*at)[1];
  EXPECT_EQ(std::count(css.begin(), css.end(), '{'), std::count(css.begin(), css.end(), '}'));
}

TEST(ReportStyle, EachClassOfThePageHasItsRule) {
  const std::string css = kReportStyle;
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(contains(css, str(".s", i, " { stroke:var(--c", i, "); }"))) << i;
    EXPECT_TRUE(contains(css, str(".f", i, " { fill:var(--c", i, "); }"))) << i;
    EXPECT_TRUE(contains(css, str(".b", i, " { background:var(--c", i, "); }"))) << i;
  }
  for (const char* rule : {"p.sub {",
                           ".facts {",
                           ".fact, .card {",
                           ".fact b {",
                           ".fact span {",
                           ".charts {",
                           ".card h3 {",
                           "svg text {",
                           "svg .grid {",
                           "svg .curve { fill:none;",
                           ".legend {",
                           ".legend i {",
                           ".scroll { overflow-x:auto; }",
                           "table.confusion {",
                           "table.confusion td.zero { color:var(--line); }",
                           "table.classes, table.environment {",
                           ".images {",
                           ".images img.small { image-rendering:pixelated; }",
                           ".misclassified {",
                           "figure img.small { image-rendering:pixelated; }",
                           "figcaption .wrong { color:var(--bad);",
                           "figcaption small {",
                           "details {",
                           "ol.pairs {",
                           "body { margin:0; background:var(--page); color:var(--ink);"}) {
    EXPECT_TRUE(contains(css, rule)) << rule;
  }
}

// A page of normalised images shows their pixels again, for each channel with its own statistics.
// Without augmentation, an image and its views are equal.
TEST(ReportImages, AViewGalleryHasEachImageBeforeItsViews) {
  const fs::path images = make_images(2);
  const Subset train{data::open_dataset(images, {.split = "train"}), {}, "train"};
  data::LoaderOptions options;
  options.transform.size = {8, 8};
  options.transform.crop_pct = 1;
  options.views = {{.count = 2, .size = {8, 8}}, {.count = 1, .size = {4, 4}}};
  const std::vector<image::Image> shown = view_gallery(train, options, 3).images;
  ASSERT_EQ(shown.size(), 12u);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t v = 1; v < 3; ++v) EXPECT_EQ(shown[4 * i + v].pixels, shown[4 * i].pixels) << i << v;
    EXPECT_EQ(shown[4 * i + 3].width, 4);
  }
}

TEST(ReportImages, UndoTheNormalisationOfEachChannel) {
  const fs::path images = make_images(2);
  const Subset train{data::open_dataset(images, {.split = "train"}), {}, "train"};
  for (const bool one_value : {false, true}) {
    data::LoaderOptions options;
    options.transform.size = {8, 8};
    options.transform.crop_pct = 1;
    options.transform.mean = one_value ? std::vector<double>{0.25} : std::vector<double>{0.1, 0.35, 0.6};
    options.transform.std = one_value ? std::vector<double>{0.5} : std::vector<double>{0.2, 0.3, 0.7};
    options.balance = options.shuffle = true;
    options.repeats = 2;
    const std::vector<Gallery> shown = training_galleries(train, options);
    ASSERT_EQ(shown[1].images.size(), 6u);
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(shown[1].images[i].pixels, shown[0].images[i].pixels) << i;
  }
}

const Metrics kMetrics{.each = {{.name = "top1", .chart = "F"}, {.name = "top5"}}};

TEST(MetricCharts, HaveTheirTitlesAndNames) {
  const fs::path csv = testing::scratch_folder() / "metrics.csv";
  write_file(csv,
             "event,step,epoch,loss,top1,top5,rate,grad,images,wait,seconds\n"
             "train,1,1,0.5,0.25,0.75,0.125,8,9,10,120\n"
             "val,1,1,0.5,0.25,0.75,,,,,180\nval_ema,1,1.5,0.625,0.375,0.875,,,,,240\n"
             "test,1,1,0.5,0.25,0.75,,,,,180\ntrain,1,2\n");
  const std::vector<Chart> charts = metric_charts(csv, kMetrics);
  ASSERT_EQ(charts.size(), 4u);
  const std::array<const char*, 4> titles{"Loss", "F", "F against time", "Learning rate"};
  const std::array<const char*, 4> axes{"epoch", "epoch", "minutes", "epoch"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(charts[i].title, titles.at(i));
    EXPECT_EQ(charts[i].x_label, axes.at(i));
    EXPECT_EQ(charts[i].percent, i == 1 || i == 2);
    ASSERT_EQ(charts[i].curves.size(), i == 3 ? 1u : 3u);
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(charts[i].curves[0].name, "training");
    EXPECT_EQ(charts[i].curves[1].name, "validation");
    EXPECT_EQ(charts[i].curves[2].name, "validation, EMA weights");
  }
  EXPECT_EQ(charts[3].curves[0].name, "learning rate");
  EXPECT_EQ(charts[3].curves[0].x, std::vector<double>{1});
  EXPECT_EQ(charts[3].curves[0].y, std::vector<double>{0.125});
  EXPECT_EQ(charts[0].curves[2].x, std::vector<double>{1.5});
  EXPECT_EQ(charts[0].curves[2].y, std::vector<double>{0.625});
  EXPECT_EQ(charts[1].curves[2].y, std::vector<double>{0.375});
  EXPECT_EQ(charts[2].curves[0].x, std::vector<double>{2}) << "minutes";
  EXPECT_EQ(charts[2].curves[2].x, std::vector<double>{4});
}

// Each score with a title has a chart; an empty field is no point, and a chart has a note.
TEST(MetricCharts, AreThoseOfTheScoresWithATitle) {
  const fs::path csv = testing::scratch_folder() / "metrics.csv";
  write_file(csv,
             "event,step,epoch,loss,a,b,c,rate,grad,images,wait,seconds\n"
             "start,0,0,9,0.25,0.5,0.75,,,,,30\ntrain,1,1,0.5,,,,0.125,8,9,10,60\nval,1,1,7,0.5,0.625,0.75,,,,,60\n"
             "train,2,2,0.25,,,,0.125,8,9,10,120\nval,2,2,8,0.75,0.875,1,,,,,120\n");
  Metrics metrics{.each = {{.name = "a", .chart = "A"}, {.name = "b"}, {.name = "c", .chart = "C", .note = "c rises"}},
                  .loss_note = "falls"};
  const std::vector<Chart> charts = metric_charts(csv, metrics);
  std::vector<std::string> titles;
  for (const Chart& chart : charts) titles.push_back(chart.title);
  EXPECT_EQ(titles, (std::vector<std::string>{"Loss", "A", "A against time", "C", "Learning rate"}));
  EXPECT_EQ(charts[0].note, "falls");
  EXPECT_EQ(charts[0].curves.size(), 3u);
  ASSERT_EQ(charts[3].curves.size(), 2u);
  EXPECT_EQ(charts[3].note, "c rises");
  EXPECT_EQ(charts[3].curves[0].y, (std::vector<double>{0.75, 1}));
  EXPECT_EQ(charts[3].curves[1].y, (std::vector<double>{0.75, 0.75})) << "before training";
  EXPECT_TRUE(charts[3].curves[1].dashed);
  metrics.validates_loss = false;
  const Chart loss = metric_charts(csv, metrics).front();
  ASSERT_EQ(loss.curves.size(), 1u);
  EXPECT_EQ(loss.curves[0].y, (std::vector<double>{0.5, 0.25}));
  EXPECT_TRUE(contains(render_chart(loss), "<p class=\"note\">falls</p>"));
}

// A stride of two from 400 points on; the last point stays.
TEST(MetricCharts, AreThinnedFromFourHundredPointsOn) {
  const fs::path csv = testing::scratch_folder() / "metrics.csv";
  for (const auto& [points, kept] :
       {std::pair{399, 399}, {400, 201}, {401, 201}, {402, 202}, {799, 400}, {800, 268}, {801, 268}}) {
    std::string rows = "event,step,epoch,loss,top1,top5,lr,grad_norm,images_per_second,skipped,seconds\n";
    for (int i = 1; i <= points; ++i) rows += str("train,", i, ",", i, ",2.5,0.25,0.5,0.01,1,100,0,60\n");
    write_file(csv, rows);
    const Curve curve = metric_charts(csv, kMetrics).at(0).curves.at(0);
    EXPECT_EQ(curve.x.size(), static_cast<size_t>(kept)) << points;
    EXPECT_EQ(curve.x.size(), curve.y.size());
    EXPECT_EQ(curve.x.back(), points);
  }
}

}  // namespace
}  // namespace vitrail::train
