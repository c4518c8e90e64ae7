// SPDX-License-Identifier: Apache-2.0
// COCO's average precision and recall against pycocotools (tools/golden/coco_metrics.py), and its rules one by one.
#include "vitrail/analysis/coco_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"

namespace vitrail::analysis {
namespace {

using nlohmann::json;
using Box = std::array<double, 4>;

constexpr double kExact = 1e-12;

const json& reference(const std::string& kind) {
  static const json cases = json::parse(std::ifstream(testing::fixture("analysis/coco_metrics.json")));
  return cases.at(kind);
}

Box box_of(const json& object) {
  const auto box = object.at("bbox").get<std::vector<double>>();
  return {box[0], box[1], box[0] + box[2], box[1] + box[3]};
}

// The truth and the results of an image.
struct ImageCase {
  std::vector<json> truth, results;
};

std::map<int64_t, ImageCase> images_of(const json& reference) {
  std::map<int64_t, ImageCase> images;
  for (const json& each : reference.at("truth").at("annotations")) images[each["image_id"]].truth.push_back(each);
  for (const json& each : reference.at("results")) images[each["image_id"]].results.push_back(each);
  return images;
}

std::map<int64_t, int64_t> categories_of(const json& reference) {
  std::map<int64_t, int64_t> index_of;
  for (const json& each : reference.at("truth").at("categories"))
    index_of.emplace(each.at("id").get<int64_t>(), std::ssize(index_of));
  return index_of;
}

// Images in descending order of their ids: the order of adding them does not matter.
template <class Area, class Overlap>
CocoMetrics evaluate(const json& reference, std::vector<int64_t> max_detections, const Area& area,
                     const Overlap& overlap) {
  const auto index_of = categories_of(reference);
  CocoMetrics metrics(std::ssize(index_of), std::move(max_detections));
  const auto images = images_of(reference);
  for (auto image = images.rbegin(); image != images.rend(); ++image) {
    const auto& truth = image->second.truth;
    const auto& results = image->second.results;
    std::vector<CocoTruth> truths;
    for (const json& each : truth) {
      truths.push_back(
          {index_of.at(each["category_id"]), each["area"], each["iscrowd"] == 1, each.value("num_keypoints", 1) == 0});
    }
    std::vector<CocoDetection> detections;
    for (const json& each : results)
      detections.push_back({index_of.at(each["category_id"]), each["score"], area(each)});
    metrics.add(image->first, truths, detections,
                [&](size_t d, size_t t) { return overlap(results[d], truth[t], truths[t].crowd); });
  }
  return metrics;
}

void expect_per_class(const CocoMetrics& metrics, const json& reference) {
  for (int64_t c = 0; c < metrics.categories(); ++c) {
    const auto ap = metrics.average_precision(CocoArea::all, {}, c);
    const json& want = reference["per_class"][static_cast<size_t>(c)];
    ASSERT_EQ(ap.has_value(), !want.is_null()) << c;
    if (ap) {
      EXPECT_NEAR(*ap, want.get<double>(), kExact) << c;
    }
  }
  const std::vector<double> curve = metrics.precision_curve(0);
  ASSERT_EQ(curve.size(), CocoMetrics::kRecalls);
  for (size_t i = 0; i < curve.size(); ++i) EXPECT_NEAR(curve[i], reference["curve"][i].get<double>(), kExact) << i;
}

TEST(CocoMetrics, AreThoseOfPycocotoolsForBoxes) {
  const json& boxes = reference("bbox");
  const CocoMetrics metrics = evaluate(
      boxes, {1, 10, 100}, [](const json& d) { return d["bbox"][2].get<double>() * d["bbox"][3].get<double>(); },
      [](const json& d, const json& t, bool crowd) { return box_overlap(box_of(d), box_of(t), crowd); });
  const std::vector<std::optional<double>> stats{metrics.average_precision(),
                                                 metrics.average_precision(CocoArea::all, 0),
                                                 metrics.average_precision(CocoArea::all, 5),
                                                 metrics.average_precision(CocoArea::small),
                                                 metrics.average_precision(CocoArea::medium),
                                                 metrics.average_precision(CocoArea::large),
                                                 metrics.average_recall(CocoArea::all, 0),
                                                 metrics.average_recall(CocoArea::all, 1),
                                                 metrics.average_recall(),
                                                 metrics.average_recall(CocoArea::small),
                                                 metrics.average_recall(CocoArea::medium),
                                                 metrics.average_recall(CocoArea::large)};
  for (size_t i = 0; i < stats.size(); ++i) EXPECT_NEAR(stats[i].value(), boxes["stats"][i].get<double>(), kExact) << i;
  expect_per_class(metrics, boxes);
}

TEST(CocoMetrics, AreThoseOfPycocotoolsForKeyPoints) {
  const json& poses = reference("keypoints");
  const auto points_of = [](const json& object) { return object["keypoints"].get<std::vector<double>>(); };
  const CocoMetrics metrics = evaluate(
      poses, {20},
      [&](const json& detection) {  // that of the smallest box around the points
        const std::vector<double> points = points_of(detection);
        Box box{points[0], points[1], points[0], points[1]};
        for (size_t i = 0; i < points.size(); i += 3) {
          box = {std::min(box[0], points[i]), std::min(box[1], points[i + 1]), std::max(box[2], points[i]),
                 std::max(box[3], points[i + 1])};
        }
        return (box[2] - box[0]) * (box[3] - box[1]);
      },
      [&](const json& d, const json& t, bool /*crowd*/) {
        return keypoint_similarity(points_of(d), {points_of(t), box_of(t), t["area"]}, coco_keypoint_sigmas());
      });
  const std::vector<std::optional<double>> stats{metrics.average_precision(),
                                                 metrics.average_precision(CocoArea::all, 0),
                                                 metrics.average_precision(CocoArea::all, 5),
                                                 metrics.average_precision(CocoArea::medium),
                                                 metrics.average_precision(CocoArea::large),
                                                 metrics.average_recall(),
                                                 metrics.average_recall(CocoArea::all, {}, 0),
                                                 metrics.average_recall(CocoArea::all, {}, 5),
                                                 metrics.average_recall(CocoArea::medium),
                                                 metrics.average_recall(CocoArea::large)};
  for (size_t i = 0; i < stats.size(); ++i) EXPECT_NEAR(stats[i].value(), poses["stats"][i].get<double>(), kExact) << i;
  expect_per_class(metrics, poses);
}

// One image with objects and detections of one category.
CocoMetrics one_image(const std::vector<Box>& truths, const std::vector<std::pair<Box, double>>& detections,
                      bool crowd = false) {
  CocoMetrics metrics(1, {1, 10, 100});
  std::vector<CocoTruth> objects;
  for (const Box& box : truths) objects.push_back({0, (box[2] - box[0]) * (box[3] - box[1]), crowd});
  std::vector<CocoDetection> found;
  for (const auto& [box, score] : detections) found.push_back({0, score, (box[2] - box[0]) * (box[3] - box[1])});
  metrics.add(0, objects, found,
              [&](size_t d, size_t t) { return box_overlap(detections[d].first, truths[t], crowd); });
  return metrics;
}

TEST(CocoMetrics, GiveOneForWhatIsRight) {
  const CocoMetrics metrics =
      one_image({{0, 0, 10, 10}, {20, 20, 90, 90}}, {{{0, 0, 10, 10}, 0.9}, {{20, 20, 90, 90}, 0.2}});
  EXPECT_NEAR(*metrics.average_precision(), 1, kExact);
  EXPECT_NEAR(*metrics.average_precision(CocoArea::small), 1, kExact);
  EXPECT_EQ(metrics.average_precision(CocoArea::large), std::nullopt) << "no object";
  EXPECT_EQ(metrics.average_recall(CocoArea::all, 0), 0.5) << "one detection of the image";
  EXPECT_EQ(metrics.best_score()->score, 0.2);
  EXPECT_EQ(metrics.best_score()->f1, 1);
}

TEST(CocoMetrics, CountASecondDetectionOfAnObjectAsWrong) {
  const CocoMetrics twice = one_image({{0, 0, 10, 10}}, {{{0, 0, 10, 10}, 0.9}, {{0, 0, 10, 10}, 0.8}});
  EXPECT_NEAR(*twice.average_precision(), 1, kExact) << "after all objects are found";
  EXPECT_EQ(twice.best_score()->score, 0.9);
  const CocoMetrics wrong_first = one_image({{0, 0, 10, 10}}, {{{50, 50, 60, 60}, 0.9}, {{0, 0, 10, 10}, 0.8}});
  EXPECT_NEAR(*wrong_first.average_precision(), 0.5, kExact);
  EXPECT_NEAR(wrong_first.best_score()->f1, 2.0 / 3, kExact);
}

TEST(CocoMetrics, LeaveOutWhatIsInACrowd) {
  const CocoMetrics metrics = one_image({{0, 0, 100, 100}}, {{{0, 0, 10, 10}, 0.9}, {{5, 5, 20, 20}, 0.8}}, true);
  EXPECT_EQ(metrics.average_precision(), std::nullopt);
  EXPECT_EQ(metrics.truths(0), 0);
  EXPECT_EQ(box_overlap({0, 0, 10, 10}, {0, 0, 100, 100}, true), 1);
}

TEST(CocoMetrics, CountAnOverlapAtTheThreshold) {
  const CocoMetrics half = one_image({{0, 0, 10, 10}}, {{{0, 0, 10, 5}, 0.9}});
  EXPECT_NEAR(*half.average_precision(CocoArea::all, 0), 1, kExact);
  EXPECT_EQ(half.average_precision(CocoArea::all, 1), 0);
}

TEST(CocoMetrics, TakeTenThousandObjectsInAnImage) {
  std::vector<Box> truths;
  std::vector<std::pair<Box, double>> detections;
  for (int i = 0; i < 10000; ++i) {
    const double x = i % 100 * 10, y = static_cast<double>(i / 100) * 10;
    truths.push_back({x, y, x + 8, y + 8});
    detections.push_back({{x, y, x + 8, y + 8}, 1 - i * 1e-5});
  }
  const CocoMetrics metrics = one_image(truths, detections);
  EXPECT_NEAR(*metrics.average_recall(), 0.01, kExact) << "a hundred detections count";
  EXPECT_NEAR(*metrics.average_precision(), 2.0 / 101, kExact) << "at the recalls 0 and 0.01";
}

TEST(CocoMetrics, RefuseWhatIsNoCategoryOrScore) {
  CocoMetrics metrics(2, {100});
  const auto none = [](size_t, size_t) { return 0.0; };
  EXPECT_ERROR(testing::error_of([&] { metrics.add(0, std::vector<CocoTruth>{{2}}, {}, none); }), "category", "2");
  EXPECT_ERROR(testing::error_of([&] { metrics.add(0, {}, std::vector<CocoDetection>{{-1}}, none); }), "category",
               "-1");
  EXPECT_ERROR(testing::error_of([&] {
                 metrics.add(0, {}, std::vector<CocoDetection>{{0, std::nan("")}}, none);
               }),
               "score of a detection", "NaN");
  EXPECT_ERROR(testing::error_of([&] { keypoint_similarity({}, {}, coco_keypoint_sigmas()); }), "key points",
               "0 and 0 numbers");
}

}  // namespace
}  // namespace vitrail::analysis
