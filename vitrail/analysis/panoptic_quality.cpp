// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/panoptic_quality.h"

#include <limits>
#include <map>
#include <unordered_map>

#include "vitrail/base/error.h"

namespace vitrail::analysis {
namespace {

struct Counted {
  PanopticSegment segment;
  int64_t area = 0;
  bool matched = false;
};

using Segments = std::map<int32_t, Counted>;

Segments counted(const PanopticMap& map, size_t categories, const std::string& where) {
  Segments result;
  for (const PanopticSegment& segment : map.segments) {
    if (segment.category < 0 || segment.category >= static_cast<int64_t>(categories))
      throw Error(where, str("categories from 0 to ", categories - 1), str(segment.category));
    if (segment.id == 0 || !result.emplace(segment.id, Counted{segment}).second)
      throw Error(where, "segments with an id each, not 0", str("id ", segment.id));
  }
  std::unordered_map<int32_t, int64_t> areas;
  for (const int32_t id : map.ids) ++areas[id];
  areas.erase(0);
  for (const auto& [id, area] : areas) {
    const auto found = result.find(id);
    if (found == result.end()) throw Error(where, "a segment for each pixel's id", str("none for id ", id));
    found->second.area = area;
  }
  for (const auto& [id, each] : result) {
    if (each.area == 0) throw Error(where, "pixels of each segment", str("none of id ", id));
  }
  return result;
}

// Pixels by their true id and their predicted one.
using Intersections = std::map<std::pair<int32_t, int32_t>, int64_t>;

Intersections intersections_of(std::span<const int32_t> truth, std::span<const int32_t> predicted) {
  std::unordered_map<uint64_t, int64_t> counts;
  for (size_t i = 0; i < truth.size(); ++i)
    ++counts[static_cast<uint64_t>(static_cast<uint32_t>(truth[i])) << 32 | static_cast<uint32_t>(predicted[i])];
  Intersections result;
  for (const auto& [key, count] : counts)
    result[{static_cast<int32_t>(key >> 32), static_cast<int32_t>(key & 0xffffffff)}] = count;
  return result;
}

int64_t pixels_in(const Intersections& intersections, int32_t truth, int32_t predicted) {
  const auto found = intersections.find({truth, predicted});
  return found == intersections.end() ? 0 : found->second;
}

}  // namespace

PanopticQuality::PanopticQuality(int64_t categories) : counts_(static_cast<size_t>(categories)) {}

void PanopticQuality::add(const PanopticMap& truth, const PanopticMap& predicted, const std::string& where) {
  if (truth.ids.size() != predicted.ids.size())
    throw Error(where, str(predicted.ids.size(), " pixels, as the prediction"), str(truth.ids.size()));
  Segments true_ones = counted(truth, counts_.size(), where), found = counted(predicted, counts_.size(), where);
  const Intersections intersections = intersections_of(truth.ids, predicted.ids);
  for (const auto& [ids, intersection] : intersections) {
    if (ids.first == 0 || ids.second == 0) continue;
    Counted &wanted = true_ones.at(ids.first), &got = found.at(ids.second);
    if (wanted.segment.crowd || wanted.segment.category != got.segment.category) continue;
    const int64_t united = wanted.area + got.area - intersection - pixels_in(intersections, 0, ids.second);
    const double iou = static_cast<double>(intersection) / static_cast<double>(united);
    if (iou <= 0.5) continue;
    Counts& counts = counts_[static_cast<size_t>(got.segment.category)];
    counts.iou += iou;
    ++counts.matched;
    wanted.matched = got.matched = true;
  }
  std::map<int64_t, int32_t> crowds;  // by category, as there the last one
  for (const PanopticSegment& segment : truth.segments) {
    if (segment.crowd) {
      crowds[segment.category] = segment.id;
    } else if (!true_ones.at(segment.id).matched) {
      ++counts_[static_cast<size_t>(segment.category)].missed;
    }
  }
  for (const auto& [id, got] : found) {
    if (got.matched) continue;
    int64_t excused = pixels_in(intersections, 0, id);
    if (const auto crowd = crowds.find(got.segment.category); crowd != crowds.end())
      excused += pixels_in(intersections, crowd->second, id);
    if (2 * excused <= got.area) ++counts_[static_cast<size_t>(got.segment.category)].wrong;
  }
}

PanopticQuality::Score PanopticQuality::of(int64_t category) const {
  const auto& [iou, matched, missed, wrong] = counts_.at(static_cast<size_t>(category));
  if (matched + missed + wrong == 0) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return {kNone, kNone, kNone, 0};
  }
  const double hits = static_cast<double>(matched), all = hits + static_cast<double>(missed + wrong) / 2;
  return {iou / all, matched > 0 ? iou / hits : 0, hits / all, 1};
}

PanopticQuality::Score PanopticQuality::mean(std::span<const int64_t> categories) const {
  Score sum;
  for (const int64_t category : categories) {
    const Score score = of(category);
    if (score.categories == 0) continue;
    sum.pq += score.pq;
    sum.sq += score.sq;
    sum.rq += score.rq;
    ++sum.categories;
  }
  const auto count = static_cast<double>(sum.categories);
  return {sum.pq / count, sum.sq / count, sum.rq / count, sum.categories};
}

}  // namespace vitrail::analysis
