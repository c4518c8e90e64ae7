// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/roc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "vitrail/base/error.h"

namespace vitrail::analysis {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The indices of scores, the highest first.  Equal scores are not ordered: curves step over them together.
std::vector<uint32_t> by_score(std::span<const float> scores, size_t labels) {
  if (labels != scores.size()) throw Error("labels", str(scores.size(), ", one for each score"), str(labels));
  if (scores.size() > UINT32_MAX) throw Error("scores", str("at most ", UINT32_MAX), str(scores.size()));
  if (std::ranges::any_of(scores, [](float score) { return std::isnan(score); }))
    throw Error("scores", "numbers", "NaN");
  std::vector<uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
  return order;
}

// Calls add(index) for each score in descending order, and step() after the last of equal ones.
template <class Add, class Step>
void walk_thresholds(std::span<const float> scores, const std::vector<uint32_t>& order, const Add& add,
                     const Step& step) {
  for (size_t i = 0; i < order.size(); ++i) {
    add(order[i]);
    if (i + 1 == order.size() || scores[order[i + 1]] != scores[order[i]]) step();
  }
}

// The area under straight lines between points of ascending x, up to a limit.
class Area {
 public:
  explicit Area(double limit) : limit_(limit) {}
  void add(double x, double y) {
    if (x_ >= limit_) return;
    const double end = std::min(x, limit_);
    const double at_end = x > x_ ? y_ + (y - y_) * (end - x_) / (x - x_) : y;
    sum_ += (end - x_) * (y_ + at_end) / 2;
    x_ = x, y_ = y;
  }
  double value() const { return sum_ / limit_; }

 private:
  double limit_, x_ = 0, y_ = 0, sum_ = 0;
};

}  // namespace

double area_under_roc(std::span<const float> scores, std::span<const uint8_t> positive) {
  const std::vector<uint32_t> order = by_score(scores, positive.size());
  const auto positives = static_cast<double>(std::ranges::count_if(positive, [](uint8_t label) { return label != 0; }));
  const double negatives = static_cast<double>(positive.size()) - positives;
  if (positives == 0 || negatives == 0) return kNaN;
  Area area(1);
  double hits = 0, false_alarms = 0;
  walk_thresholds(
      scores, order, [&](uint32_t i) { positive[i] != 0 ? ++hits : ++false_alarms; },
      [&] { area.add(false_alarms / negatives, hits / positives); });
  return area.value();
}

double per_region_overlap(std::span<const float> scores, std::span<const int32_t> regions, int32_t count,
                          double max_rate) {
  const std::vector<uint32_t> order = by_score(scores, regions.size());
  std::vector<double> pixels(static_cast<size_t>(count) + 1);
  for (const int32_t region : regions) ++pixels.at(static_cast<size_t>(region));
  if (count == 0 || pixels[0] == 0) return kNaN;
  Area area(max_rate);
  double overlap = 0, false_alarms = 0;
  walk_thresholds(
      scores, order,
      [&](uint32_t i) {
        const auto region = static_cast<size_t>(regions[i]);
        region == 0 ? ++false_alarms : overlap += 1 / pixels[region];
      },
      [&] { area.add(false_alarms / pixels[0], overlap / count); });
  return area.value();
}

}  // namespace vitrail::analysis
