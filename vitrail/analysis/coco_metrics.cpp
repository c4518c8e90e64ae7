// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/coco_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "vitrail/base/error.h"

namespace vitrail::analysis {
namespace {

constexpr double kSmall = 32.0 * 32, kLarge = 96.0 * 96, kHuge = 1e5 * 1e5;
constexpr std::array<std::array<double, 2>, 4> kAreaRanges{
    {{0, kHuge}, {0, kSmall}, {kSmall, kLarge}, {kLarge, kHuge}}};

bool is_in(double area, size_t range) { return area >= kAreaRanges[range][0] && area <= kAreaRanges[range][1]; }

// The positions of the best detections of a category, the best one first.
std::vector<size_t> best_of(std::span<const CocoDetection> detections, int64_t category, int64_t max_count) {
  std::vector<size_t> found;
  for (size_t i = 0; i < detections.size(); ++i) {
    if (detections[i].category == category) found.push_back(i);
  }
  std::ranges::stable_sort(found, std::greater{}, [&](size_t i) { return detections[i].score; });
  if (std::ssize(found) > max_count) found.resize(static_cast<size_t>(max_count));
  return found;
}

// An object's position among those of a category, and whether it does not count in a range of areas.
struct RankedTruth {
  size_t position = 0;
  bool ignored = false, crowd = false;
};

// The object that a detection matches, of those that have none yet: the one with the largest overlap.  One that counts
// comes before all that do not, which are at the end.  −1: none.
int64_t matched_truth(const std::vector<RankedTruth>& truths, const std::vector<bool>& taken, const double* overlaps,
                      double threshold) {
  double best = std::min(threshold, 1 - 1e-10);
  int64_t match = -1;
  for (size_t i = 0; i < truths.size(); ++i) {
    if (taken[i] && !truths[i].crowd) continue;
    if (match >= 0 && !truths[static_cast<size_t>(match)].ignored && truths[i].ignored) break;
    const double overlap = overlaps[truths[i].position];
    if (overlap < best) continue;
    best = overlap;
    match = static_cast<int64_t>(i);
  }
  return match;
}

}  // namespace

double CocoMetrics::threshold(size_t index) {
  constexpr double kFirst = 0.5, kLast = 0.95;
  constexpr double step = (kLast - kFirst) / (kThresholds - 1);  // numpy.linspace's, whose rounding decides ties
  return index + 1 == kThresholds ? kLast : static_cast<double>(index) * step + kFirst;
}

CocoMetrics::CocoMetrics(int64_t categories, std::vector<int64_t> max_detections)
    : max_detections_(std::move(max_detections)), categories_(static_cast<size_t>(categories)) {}

void CocoMetrics::add(int64_t image, std::span<const CocoTruth> truths, std::span<const CocoDetection> detections,
                      const CocoOverlap& overlap) {
  std::vector<std::vector<size_t>> of_category(categories_.size());  // positions of the objects
  const auto require_category = [&](int64_t category) {
    if (category < 0 || category >= categories())
      throw Error("category", str("0 to ", categories() - 1), std::to_string(category));
  };
  for (size_t i = 0; i < truths.size(); ++i) {
    require_category(truths[i].category);
    of_category[static_cast<size_t>(truths[i].category)].push_back(i);
  }
  std::vector<bool> has_detection(categories_.size());
  for (const CocoDetection& each : detections) {
    require_category(each.category);
    if (std::isnan(each.score)) throw Error("score of a detection", "a number", "NaN");
    has_detection[static_cast<size_t>(each.category)] = true;
  }
  for (size_t c = 0; c < categories_.size(); ++c) {
    const std::vector<size_t>& objects = of_category[c];
    if (objects.empty() && !has_detection[c]) continue;
    const std::vector<size_t> best =
        has_detection[c] ? best_of(detections, static_cast<int64_t>(c), max_detections_.back()) : std::vector<size_t>();
    std::vector<double> overlaps;  // [detections, objects]
    overlaps.reserve(best.size() * objects.size());
    for (const size_t d : best) {
      for (const size_t t : objects) overlaps.push_back(overlap(d, t));
    }
    for (size_t range = 0; range < kAreas; ++range) {
      std::vector<RankedTruth> ranked;
      for (size_t i = 0; i < objects.size(); ++i) {
        const CocoTruth& truth = truths[objects[i]];
        ranked.push_back({i, truth.crowd || truth.ignored || !is_in(truth.area, range), truth.crowd});
      }
      std::ranges::stable_sort(ranked, {}, &RankedTruth::ignored);
      categories_[c].truths[range] += std::ranges::count(ranked, false, &RankedTruth::ignored);
      std::vector<Match> matches(best.size());
      for (size_t d = 0; d < best.size(); ++d)
        matches[d] = {.score = detections[best[d]].score, .image = image, .rank = static_cast<int32_t>(d)};
      for (size_t t = 0; t < kThresholds; ++t) {
        const auto bit = static_cast<uint16_t>(1U << t);
        std::vector<bool> taken(ranked.size());
        for (size_t d = 0; d < best.size(); ++d) {
          const int64_t match = matched_truth(ranked, taken, overlaps.data() + d * objects.size(), threshold(t));
          if (match < 0) {
            if (!is_in(detections[best[d]].area, range)) matches[d].ignored |= bit;
            continue;
          }
          taken[static_cast<size_t>(match)] = true;
          matches[d].matched |= bit;
          if (ranked[static_cast<size_t>(match)].ignored) matches[d].ignored |= bit;
        }
      }
      std::vector<Match>& all = categories_[c].matches[range];
      all.insert(all.end(), matches.begin(), matches.end());
    }
  }
}

std::vector<CocoMetrics::Match> CocoMetrics::sorted(const OfCategory& category, CocoArea area,
                                                    int64_t max_detections) const {
  std::vector<Match> matches;
  std::ranges::copy_if(category.matches[static_cast<size_t>(area)], std::back_inserter(matches),
                       [&](const Match& match) { return match.rank < max_detections; });
  std::ranges::sort(matches, [](const Match& a, const Match& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.image != b.image ? a.image < b.image : a.rank < b.rank;
  });
  return matches;
}

CocoMetrics::Curve CocoMetrics::curve(const std::vector<Match>& matches, int64_t truths, size_t threshold) const {
  std::vector<double> recalls, precisions;
  double right = 0, wrong = 0;
  for (const Match& match : matches) {
    const bool counts = (match.ignored >> threshold & 1) == 0, matched = (match.matched >> threshold & 1) != 0;
    right += counts && matched;
    wrong += counts && !matched;
    recalls.push_back(right / static_cast<double>(truths));
    precisions.push_back(right / (wrong + right + std::numeric_limits<double>::epsilon()));
  }
  for (size_t i = precisions.size(); i-- > 1;) precisions[i - 1] = std::max(precisions[i - 1], precisions[i]);
  Curve result{.recall = recalls.empty() ? 0 : recalls.back()};
  constexpr double step = 1.0 / (kRecalls - 1);
  for (size_t i = 0; i < kRecalls; ++i) {
    const double recall = i + 1 == kRecalls ? 1 : static_cast<double>(i) * step;
    const auto at = std::ranges::lower_bound(recalls, recall) - recalls.begin();
    if (at == std::ssize(recalls)) break;
    result.precision[i] = precisions[static_cast<size_t>(at)];
  }
  return result;
}

template <class Value>
std::optional<double> CocoMetrics::mean(CocoArea area, int64_t max_detections, std::optional<size_t> threshold,
                                        std::optional<int64_t> category, Value value) const {
  double sum = 0;
  int64_t count = 0;
  for (int64_t c = category.value_or(0); c < (category ? *category + 1 : categories()); ++c) {
    const OfCategory& of_category = categories_.at(static_cast<size_t>(c));
    const int64_t objects = of_category.truths[static_cast<size_t>(area)];
    if (objects == 0) continue;
    const std::vector<Match> matches = sorted(of_category, area, max_detections);
    for (size_t t = threshold.value_or(0); t < (threshold ? *threshold + 1 : kThresholds); ++t, ++count)
      sum += value(curve(matches, objects, t));
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

std::optional<double> CocoMetrics::average_precision(CocoArea area, std::optional<size_t> threshold,
                                                     std::optional<int64_t> category) const {
  return mean(area, max_detections_.back(), threshold, category, [](const Curve& curve) {
    return std::accumulate(curve.precision.begin(), curve.precision.end(), 0.0) / kRecalls;
  });
}

std::optional<double> CocoMetrics::average_recall(CocoArea area, std::optional<size_t> max_detections,
                                                  std::optional<size_t> threshold,
                                                  std::optional<int64_t> category) const {
  const int64_t count = max_detections_.at(max_detections.value_or(max_detections_.size() - 1));
  return mean(area, count, threshold, category, [](const Curve& curve) { return curve.recall; });
}

std::vector<double> CocoMetrics::precision_curve(int64_t category, size_t threshold) const {
  const OfCategory& of_category = categories_.at(static_cast<size_t>(category));
  if (of_category.truths[0] == 0) return {};
  const Curve result =
      curve(sorted(of_category, CocoArea::all, max_detections_.back()), of_category.truths[0], threshold);
  return {result.precision.begin(), result.precision.end()};
}

std::optional<CocoMetrics::BestScore> CocoMetrics::best_score(size_t threshold) const {
  OfCategory all;
  for (const OfCategory& category : categories_) {
    std::ranges::copy(category.matches[0], std::back_inserter(all.matches[0]));
    all.truths[0] += category.truths[0];
  }
  const std::vector<Match> matches = sorted(all, CocoArea::all, max_detections_.back());
  if (all.truths[0] == 0 || matches.empty()) return std::nullopt;
  const auto objects = static_cast<double>(all.truths[0]);
  BestScore best;
  double right = 0, wrong = 0;
  for (size_t i = 0; i < matches.size(); ++i) {
    if ((matches[i].ignored >> threshold & 1) == 0) ((matches[i].matched >> threshold & 1) != 0 ? right : wrong) += 1;
    if (i + 1 < matches.size() && matches[i + 1].score == matches[i].score) continue;
    const double f1 = 2 * right / (right + wrong + objects);
    if (f1 > best.f1 || i == 0) best = {matches[i].score, f1, right / std::max(1.0, right + wrong), right / objects};
  }
  return best;
}

int64_t CocoMetrics::truths(int64_t category) const { return categories_.at(static_cast<size_t>(category)).truths[0]; }

double box_overlap(const std::array<double, 4>& detection, const std::array<double, 4>& truth, bool crowd) {
  const double width = std::min(detection[2], truth[2]) - std::max(detection[0], truth[0]);
  const double height = std::min(detection[3], truth[3]) - std::max(detection[1], truth[1]);
  if (width <= 0 || height <= 0) return 0;
  const auto area = [](const std::array<double, 4>& box) { return (box[2] - box[0]) * (box[3] - box[1]); };
  const double both = width * height, own = area(detection);
  return both / (crowd ? own : own + area(truth) - both);
}

double keypoint_similarity(std::span<const double> detection, const CocoPose& truth, std::span<const double> sigmas) {
  const size_t count = sigmas.size();
  if (detection.size() != 3 * count || truth.points.size() != 3 * count) {
    throw Error("key points", str(count, " points of x, y and visibility"),
                str(detection.size(), " and ", truth.points.size(), " numbers"));
  }
  const double width = truth.box[2] - truth.box[0], height = truth.box[3] - truth.box[1];
  const double left = truth.box[0] - width, right = truth.box[0] + 2 * width;
  const double top = truth.box[1] - height, bottom = truth.box[1] + 2 * height;
  const auto outside = [](double at, double low, double high) {
    return std::max(0.0, low - at) + std::max(0.0, at - high);
  };
  bool any = false;
  for (size_t i = 0; i < count; ++i) any |= truth.points[3 * i + 2] > 0;
  double sum = 0;
  int64_t used = 0;
  for (size_t i = 0; i < count; ++i) {
    if (any && truth.points[3 * i + 2] <= 0) continue;
    const double x = detection[3 * i], y = detection[3 * i + 1];
    // Without labelled points, it is how far those found are outside of twice the box.
    const double dx = any ? x - truth.points[3 * i] : outside(x, left, right);
    const double dy = any ? y - truth.points[3 * i + 1] : outside(y, top, bottom);
    const double variance = 4 * sigmas[i] * sigmas[i];
    sum += std::exp(-(dx * dx + dy * dy) / variance / (truth.area + std::numeric_limits<double>::epsilon()) / 2);
    ++used;
  }
  return sum / static_cast<double>(used);
}

std::span<const double> coco_keypoint_sigmas() {
  static constexpr std::array<double, 17> kSigmas{0.026, 0.025, 0.025, 0.035, 0.035, 0.079, 0.079, 0.072, 0.072,
                                                  0.062, 0.062, 0.107, 0.107, 0.087, 0.087, 0.089, 0.089};
  return kSigmas;
}

}  // namespace vitrail::analysis
