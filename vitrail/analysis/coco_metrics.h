// SPDX-License-Identifier: Apache-2.0
#pragma once
// How well detections agree with the true objects of images: COCO's average precision and recall, counted as
// pycocotools' COCOeval.
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vitrail::analysis {

struct CocoTruth {
  int64_t category = 0;
  double area = 0;
  bool crowd = false;    // several objects, whose detections do not count
  bool ignored = false;  // not counted, as a crowd is not
};

struct CocoDetection {
  int64_t category = 0;
  double score = 0, area = 0;
};

// The overlap of a detection and an object, by their positions: intersection over union or object keypoint similarity.
using CocoOverlap = std::function<double(size_t detection, size_t truth)>;

enum class CocoArea { all, small, medium, large };  // limits of 32² and 96² pixels

class CocoMetrics {
 public:
  static constexpr size_t kThresholds = 10;  // overlaps 0.5, 0.55, …, 0.95
  static constexpr size_t kRecalls = 101;    // points of a curve: 0, 0.01, …, 1

  // max_detections: how many detections of an image and category count, with the best scores, in ascending order;
  // COCO's are {1, 10, 100} for boxes and masks, {20} for key points.
  CocoMetrics(int64_t categories, std::vector<int64_t> max_detections);

  // Images may come in any order; `image` orders detections of equal scores.  `overlap` is called for pairs of one
  // category.  Throws Error for a category out of range and a score that is NaN.
  void add(int64_t image, std::span<const CocoTruth> truths, std::span<const CocoDetection> detections,
           const CocoOverlap& overlap);

  // What follows is over all that was added.  It is the mean over the categories that have objects that count, or that
  // of one category; none: there is no such object.

  // The precision's mean over the curve and over the thresholds, or at one of them.
  std::optional<double> average_precision(CocoArea area = CocoArea::all, std::optional<size_t> threshold = {},
                                          std::optional<int64_t> category = {}) const;
  // The recall's mean over the thresholds, or at one of them; `max_detections`: a position of the list, by default
  // the last.
  std::optional<double> average_recall(CocoArea area = CocoArea::all, std::optional<size_t> max_detections = {},
                                       std::optional<size_t> threshold = {},
                                       std::optional<int64_t> category = {}) const;
  // [kRecalls]: the precision at each recall; empty without objects.
  std::vector<double> precision_curve(int64_t category, size_t threshold = 0) const;

  struct BestScore {
    double score = 0, f1 = 0, precision = 0, recall = 0;
  };
  // The least score of the detections that give the best F1 over all categories at a threshold; none without objects
  // or detections.
  std::optional<BestScore> best_score(size_t threshold = 0) const;

  int64_t truths(int64_t category) const;  // that count
  int64_t categories() const { return static_cast<int64_t>(categories_.size()); }

  // 0.5, 0.55, …
  static double threshold(size_t index);

 private:
  static constexpr size_t kAreas = 4;
  // What became of a detection: a bit for each threshold.
  struct Match {
    double score = 0;
    int64_t image = 0;
    int32_t rank = 0;  // among those of its image and category
    uint16_t matched = 0, ignored = 0;
  };
  struct OfCategory {
    std::array<std::vector<Match>, kAreas> matches;
    std::array<int64_t, kAreas> truths{};
  };
  // The curve at one threshold.
  struct Curve {
    double recall = 0;
    std::array<double, kRecalls> precision{};
  };

  std::vector<Match> sorted(const OfCategory& category, CocoArea area, int64_t max_detections) const;
  Curve curve(const std::vector<Match>& matches, int64_t truths, size_t threshold) const;
  template <class Value>
  std::optional<double> mean(CocoArea area, int64_t max_detections, std::optional<size_t> threshold,
                             std::optional<int64_t> category, Value value) const;

  std::vector<int64_t> max_detections_;
  std::vector<OfCategory> categories_;
};

// Intersection over union of boxes left, top, right, bottom; of a crowd, the intersection over the detection's area.
double box_overlap(const std::array<double, 4>& detection, const std::array<double, 4>& truth, bool crowd);

// COCO's object keypoint similarity.  points [3 · n]: x, y and visibility; the detection's visibility is not used.
struct CocoPose {
  std::span<const double> points;
  std::array<double, 4> box{};  // left, top, right, bottom
  double area = 0;
};
double keypoint_similarity(std::span<const double> detection, const CocoPose& truth, std::span<const double> sigmas);

// The 17 of COCO's persons.
std::span<const double> coco_keypoint_sigmas();

}  // namespace vitrail::analysis
