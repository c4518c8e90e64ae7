// SPDX-License-Identifier: Apache-2.0
// The parts of reports: texts, charts, confusion matrices and images.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/paths.h"
#include "tests/train/training_fixture.h"
#include "vitrail/image/decode.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/report/report_images_internal.h"

namespace vitrail::train {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

TEST(ReportText, NumbersAreSeparatedInGroupsOfThree) {
  const std::pair<int64_t, const char*> numbers[] = {
      {0, "0"}, {7, "7"}, {999, "999"}, {1000, "1,000"}, {123456, "123,456"}, {5717416, "5,717,416"}};
  for (const auto& [number, text] : numbers) EXPECT_EQ(with_thousands_separators(number), text);
}

TEST(ReportText, DurationsHaveTwoUnits) {
  const std::pair<double, const char*> durations[] = {
      {0, "0.0 s"},         {7.54, "7.5 s"},       {59.9, "59.9 s"},        {59.97, "1 min 00 s"},
      {60, "1 min 00 s"},   {190.9, "3 min 10 s"}, {3599.9, "59 min 59 s"}, {3600, "1 h 00 min"},
      {3900, "1 h 05 min"}, {90061, "25 h 01 min"}};
  for (const auto& [seconds, text] : durations) EXPECT_EQ(duration_text(seconds), text);
}

TEST(ReportText, IsSafeInHtml) {
  EXPECT_EQ(escape_html("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
  EXPECT_EQ(escape_html("é"), "é");
  EXPECT_EQ(percent(0.8812), "88.1 %");
  EXPECT_EQ(percent(0), "0.0 %");
  EXPECT_EQ(percent(1, 0), "100 %");
}

// Names of files and classes come from a user's folders.
TEST(ReportText, IsEscapedWhereverItStandsOnThePage) {
  const auto given = [](const std::string& name) { return name + "&<\">"; };
  const auto escaped = [](const std::string& name) { return name + "&amp;&lt;&quot;&gt;"; };
  Report report;
  report.title = given("title");
  report.subtitle = given("subtitle");
  report.facts = {{given("fact"), given("value")}};
  report.charts = {{given("chart"), given("axis"), false, {{given("curve"), {1, 2}, {1, 2}}}}};
  report.class_rows.resize(1);
  report.class_rows[0].name = given("row");
  report.classes = {given("one"), given("two")};
  report.confusion = {{1, 2}, {3, 4}};
  report.confusion_of = given("images");
  report.misclassified = {{.path = given("path"),
                           .label = given("label"),
                           .prediction = given("prediction"),
                           .thumbnail = image::make_image(2, 2, 3)}};
  report.recipe = given("recipe");
  report.environment = {{given("name"), given("text")}};
  const std::string page = render_report(report);
  for (const char* name : {"title", "subtitle", "fact", "value", "chart", "axis", "curve", "row", "one", "two",
                           "images", "path", "label", "prediction", "recipe", "name", "text"}) {
    EXPECT_TRUE(contains(page, escaped(name))) << name;
    EXPECT_FALSE(contains(page, std::string(name) + "&<")) << name;
  }
  for (const std::string& part : {"alt=\"" + escaped("label") + "\" title=\"" + escaped("path") + "\">",
                                  "<b>" + escaped("value") + "</b><span>" + escaped("fact") + "</span>",
                                  "<td>" + escaped("name") + "</td><td>" + escaped("text") + "</td>"}) {
    EXPECT_TRUE(contains(page, part)) << part;
  }
}

TEST(ReportText, APartWithoutContentIsLeftOut) {
  const std::vector<std::pair<std::string, std::function<void(Report&)>>> parts{
      {"<h2>Curves</h2>", [](Report& r) { r.charts.resize(1); }},
      {"<h2>Training images</h2>",
       [](Report& r) {
         r.galleries = {{"Training images", {image::make_image(2, 2, 3)}}};
       }},
      {"<h2>Classes: ", [](Report& r) { r.class_rows.resize(1); }},
      {"<h2>Confusion: ", [](Report& r) { r.confusion = {{1}}, r.classes = {"x"}; }},
      {"<h2>Worst misclassifications</h2>",
       [](Report& r) {
         r.misclassified.resize(1);
         r.misclassified[0].thumbnail = image::make_image(2, 2, 3);
       }},
      {"<summary>Recipe</summary>", [](Report& r) { r.recipe = "{}"; }}};
  for (const auto& [title, fill] : parts) {
    Report report;
    fill(report);
    const std::string page = render_report(report);
    for (const auto& [other, unused] : parts) EXPECT_EQ(contains(page, other), other == title) << title << other;
  }
}

TEST(ReportText, ImagesOfUpTo96PixelsAreEnlarged) {
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{96, 96}, {97, 2}, {2, 97}}) {
    const image::Image image = image::make_image(width, height, 3);
    Report example, wrong;
    example.galleries = {{"x", {image}}};
    wrong.misclassified.resize(1);
    wrong.misclassified[0].thumbnail = image;
    for (const Report& report : {example, wrong})
      EXPECT_EQ(contains(render_report(report), "<img class=\"small\""), width == height) << width;
  }
}

// Training images are shown if a class has some, and an average precision if the report has such a column.
TEST(ReportText, TheTableOfClassesHasTheColumnsThatAreKnown) {
  Report report;
  report.class_rows.resize(2);
  report.class_rows[0].name = "cat";
  report.class_rows[0].metrics = {.precision = 0.5, .recall = 0.25, .f1 = 0.125, .support = 4};
  report.class_rows[0].average_precision = 0.75;
  const std::string metrics =
      "<td>4</td>%<td>0.5000</td><td>0.2500</td><td>0.1250</td>"
      "<td class=\"bar\"><i style=\"width:13%\"></i></td></tr>";
  const auto row = [&](const std::string& images, const std::string& precision) {
    return "<tr><td>cat</td>" + images + std::string(metrics).replace(metrics.find('%'), 1, precision);
  };
  EXPECT_TRUE(contains(render_report(report), row("", "")));
  report.shows_average_precision = true;
  EXPECT_TRUE(contains(render_report(report), row("", "<td>0.7500</td>")));
  EXPECT_TRUE(contains(render_report(report), "<tr><td></td><td>0</td><td></td><td>0.0000</td>"));
  report.class_rows[1].training_images = 1;
  EXPECT_TRUE(contains(render_report(report), row("<td>0</td>", "<td>0.7500</td>")));
  EXPECT_TRUE(contains(render_report(report),
                       "<th>class</th><th>training images</th><th>images</th><th>average precision</th>"));
}

// The coordinates of the values of a curve.
std::vector<std::pair<double, double>> points_of(const std::string& svg) {
  const std::string begin = "points=\"";
  const size_t at = svg.find(begin) + begin.size();
  std::istringstream words(svg.substr(at, svg.find('"', at) - at));
  std::vector<std::pair<double, double>> points;
  for (std::string word; words >> word;)
    points.emplace_back(std::stod(word), std::stod(word.substr(word.find(',') + 1)));
  return points;
}

TEST(ReportChart, HigherAndLaterValuesAreAboveAndOnTheRight) {
  const Chart chart{"A <title>", "epoch", false, {{"loss & more", {1, 2, 3, 4}, {2, 1, kNoValue, 5}}}};
  const std::string svg = render_chart(chart);
  const auto points = points_of(svg);
  ASSERT_EQ(points.size(), 3u);  // one value is none
  EXPECT_LT(points[0].first, points[1].first);
  EXPECT_LT(points[1].first, points[2].first);
  EXPECT_NEAR((points[1].first - points[0].first) * 3, points[2].first - points[0].first, 0.4);
  EXPECT_LT(points[2].second, points[0].second);
  EXPECT_LT(points[0].second, points[1].second);
  EXPECT_TRUE(contains(svg, "A &lt;title&gt;"));
  EXPECT_TRUE(contains(svg, "<title>loss &amp; more: 5 at 4</title>"));
  EXPECT_FALSE(contains(svg, ",nan") || contains(svg, ": nan"));
}

TEST(ReportChart, ValuesAreInsideTheFrame) {
  const std::vector<std::vector<double>> curves = {{0, 0}, {1, 1}, {0.999, 1}, {1e-9, 2e-9}, {-3, 7e6}, {0.2, 0.2004}};
  for (const std::vector<double>& y : curves) {
    for (const bool in_percent : {false, true}) {
      const std::string svg = render_chart({"t", "x", in_percent, {{"c", {0, 10}, y}}});
      for (const auto& [left, top] : points_of(svg)) {
        EXPECT_GE(left, 52);
        EXPECT_LE(left, 548);
        EXPECT_GE(top, 10);
        EXPECT_LE(top, 240);
      }
    }
  }
}

TEST(ReportChart, WithoutValuesIsEmpty) {
  const std::string svg = render_chart({"t", "x", true, {{"c", {}, {}}, {"d", {1}, {kNoValue}}}});
  EXPECT_TRUE(points_of(svg).empty());
  EXPECT_FALSE(contains(svg, "inf"));
}

TEST(ReportChart, DotsAreDrawnForAFewValues) {
  for (const int count : {60, 61}) {
    Curve curve{"c", {}, {}};
    for (int i = 0; i < count; ++i) {
      curve.x.push_back(i);
      curve.y.push_back(i % 7);
    }
    EXPECT_EQ(contains(render_chart({"t", "x", false, {curve}}), "<circle"), count == 60);
  }
}

TEST(ReportChart, ACurveNeedsTwoValues) {
  std::vector<Chart> charts{{"none", "x", false, {}},
                            {"one", "x", false, {{"c", {1, 2}, {kNoValue, 5}}}},
                            {"two", "x", false, {{"c", {1}, {5}}, {"d", {1, 2, 3}, {1, kNoValue, 3}}}}};
  remove_empty(charts);
  ASSERT_EQ(charts.size(), 1u);
  EXPECT_EQ(charts[0].title, "two");
}

const Metrics kAccuracy{.each = {{.name = "top1", .chart = "accuracy"}, {.name = "top5"}}};

TEST(ReportChart, ALongCurveIsThinnedAndKeepsItsEnds) {
  const fs::path csv = testing::scratch_folder() / "metrics.csv";
  for (const int points : {400, 401, 799, 1000, 1201}) {
    std::string rows = "event,step,epoch,loss,top1,top5,rate,grad,images,wait,seconds\n";
    for (int i = 1; i <= points; ++i) rows += str("train,", i, ",", i, ",2.5,0.25,0.5,0.01,1,100,0,60\n");
    write_file(csv, rows);
    const std::vector<double> x = metric_charts(csv, kAccuracy).at(0).curves.at(0).x;
    EXPECT_GT(x.size(), 150u) << points;
    EXPECT_LE(x.size(), 401u) << points;
    EXPECT_EQ(x.front(), 1) << points;
    EXPECT_EQ(x.back(), points);
    EXPECT_TRUE(std::adjacent_find(x.begin(), x.end(), std::greater_equal<>()) == x.end()) << points;
  }
}

TEST(ReportChart, HasTheColumnsOfTheMetrics) {
  const fs::path csv = testing::scratch_folder() / "metrics.csv";
  write_file(
      csv,
      "event,step,epoch,loss,top1,top5,rate,grad,images,wait,seconds\n"
      "train,10,1,2.5,0.25,0.5,0.01,1,100,0,60\nval,10,1,2.25,0.5,1,,,,,90\ntrain,20,2,1.5,0.75,0.5,0.005,1,1,0,120\n"
      "val,20,2,1.25,0.625,1,,,,,150\nval,30");
  const std::vector<Chart> charts = metric_charts(csv, kAccuracy);
  ASSERT_EQ(charts.size(), 4u);
  ASSERT_EQ(charts[0].curves.size(), 2u);
  EXPECT_EQ(charts[0].curves[0].y, (std::vector<double>{2.5, 1.5}));
  EXPECT_EQ(charts[0].curves[1].y, (std::vector<double>{2.25, 1.25}));
  EXPECT_EQ(charts[0].curves[1].x, (std::vector<double>{1, 2}));
  EXPECT_EQ(charts[1].curves[1].y, (std::vector<double>{0.5, 0.625}));
  EXPECT_TRUE(charts[1].percent);
  EXPECT_EQ(charts[2].curves[0].x, (std::vector<double>{1, 2}));
  EXPECT_EQ(charts[2].curves[1].x, (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(charts[3].curves[0].y, (std::vector<double>{0.01, 0.005}));
  for (const Chart& chart : metric_charts(csv.parent_path() / "none.csv", kAccuracy)) {
    EXPECT_TRUE(chart.curves.empty());
  }
}

Report confusion_of(size_t classes) {
  Report report;
  report.confusion.assign(classes, std::vector<int64_t>(classes));
  for (size_t c = 0; c < classes; ++c) {
    report.classes.push_back("class<" + std::to_string(c));
    report.confusion[c][c] = 1000;
  }
  return report;
}

TEST(ReportConfusion, OfFewClassesIsATable) {
  Report report = confusion_of(40);
  report.confusion[1][2] = 250;
  report.confusion[3].assign(40, 0);  // a class without images
  const std::string html = render_confusion(report);
  EXPECT_TRUE(contains(html, "title=\"class&lt;1 predicted as class&lt;2: 20.0 %\">250</td>"));
  EXPECT_TRUE(contains(html, "title=\"class&lt;1 predicted as class&lt;1: 80.0 %\">1000</td>"));
  EXPECT_TRUE(contains(html, "title=\"class&lt;3 predicted as class&lt;3: 0.0 %\">0</td>"));
  EXPECT_FALSE(contains(html, "nan"));
}

TEST(ReportConfusion, OfManyClassesListsConfusedPairsInDescendingOrder) {
  Report report = confusion_of(41);
  for (size_t c = 0; c + 1 < 41; ++c) report.confusion[c][c + 1] = static_cast<int64_t>(c) + 1;
  const std::string html = render_confusion(report);
  EXPECT_TRUE(
      html.starts_with("<ol class=\"pairs\">\n<li>class&lt;39 predicted as class&lt;40: 40</li>\n"
                       "<li>class&lt;38 predicted as class&lt;39: 39</li>\n"))
      << html;
  EXPECT_TRUE(contains(html, "<li>class&lt;10 predicted as class&lt;11: 11</li>"));  // the thirtieth
  EXPECT_FALSE(contains(html, "<li>class&lt;9 predicted as class&lt;10: 10</li>"));
  EXPECT_FALSE(contains(html, "1000"));
}

TEST(Thumbnail, FitsIntoItsLimit) {
  const std::array<int64_t, 4> sizes[] = {{160, 160, 160, 160}, {161, 80, 160, 79}, {320, 160, 160, 80},
                                          {3, 3000, 1, 160},    {3000, 3, 160, 1},  {1, 1, 1, 1}};
  for (const auto& [width, height, to_width, to_height] : sizes) {
    const image::Image thumbnail = make_thumbnail(image::make_image(width, height, 3));
    EXPECT_EQ(thumbnail.width, to_width);
    EXPECT_EQ(thumbnail.height, to_height);
  }
}

// About 40 photographs of 160 pixels fit a page of 1 MB.
TEST(ReportImages, AreEmbeddedAsTheSmallerOfPngAndJpeg) {
  const image::Image photo = make_thumbnail(image::read_image(testing::source("examples/photographs/chelsea.png")));
  EXPECT_TRUE(data_uri(photo).starts_with("data:image/jpeg;base64,/9j/"));
  EXPECT_LT(data_uri(photo).size(), 25'000u);
  EXPECT_TRUE(data_uri(image::make_image(28, 28, 1)).starts_with("data:image/png;base64,iVBOR"));
}

TEST(ReportImages, AreEvenlySpacedAndWithoutThoseThatCannotBeRead) {
  const fs::path images = make_images(10);  // 30 training images
  write_file(images / "train/blue/00.png", "none");
  Subset train{data::open_dataset(images, {.split = "train"}), {}, "train"};
  data::LoaderOptions options;
  options.transform.size = {8, 8};
  options.transform.crop_pct = 1;
  options.batch_size = 3;
  options.shuffle = true;
  options.unreadable = data::Unreadable::replace;
  const auto galleries = [&] { return training_galleries(train, options); };
  const std::vector<Gallery> all = galleries();
  ASSERT_EQ(all[0].images.size(), 11u);
  ASSERT_EQ(all[1].images.size(), 11u);
  for (size_t i = 0; i < 11; ++i) {
    EXPECT_EQ(all[0].images[i].pixels, train.dataset->image(static_cast<int64_t>(i + 1) * 30 / 12).pixels) << i;
    EXPECT_EQ(all[1].images[i].pixels, all[0].images[i].pixels) << i;  // normalised and back
  }
  train.samples = {7, 3};
  const std::vector<image::Image> two = galleries()[0].images;
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].pixels, train.dataset->image(7).pixels);
  EXPECT_EQ(two[1].pixels, train.dataset->image(3).pixels);
  train.samples = {0};
  EXPECT_TRUE(galleries()[1].images.empty());
}

}  // namespace
}  // namespace vitrail::train
