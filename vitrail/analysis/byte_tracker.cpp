// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/byte_tracker.h"

#include <algorithm>
#include <cmath>

#include "vitrail/analysis/linear_assignment.h"

namespace vitrail::analysis {
namespace {

// Costs up to which a track and a box are associated, in BYTETracker's three rounds.
constexpr double kMaxFirstCost = 0.8, kMaxSecondCost = 0.5, kMaxUnconfirmedCost = 0.7;
constexpr double kDuplicateIou = 0.85;

// Standard deviations of DeepSORT's filter as shares of the box's height, but those of the aspect ratio.
constexpr double kPositionNoise = 1.0 / 20, kVelocityNoise = 1.0 / 160;
constexpr double kAspectNoise = 1e-2, kAspectVelocityNoise = 1e-5, kMeasuredAspectNoise = 1e-1;
constexpr size_t kAspect = 2, kHeight = 3;

double noise_of(size_t coordinate, double aspect_noise, double share, double height) {
  return coordinate == kAspect ? aspect_noise : share * height;
}

double squared(double value) { return value * value; }

std::array<double, 4> measured(const ScoredBox& box) {
  const std::array<double, 4> sides{box.box[0], box.box[1], box.box[2], box.box[3]};
  const double width = sides[2] - sides[0], height = sides[3] - sides[1];
  return {sides[0] + width / 2, sides[1] + height / 2, width / height, height};
}

bool is_usable(const ScoredBox& box) {
  return std::isfinite(box.score) && std::ranges::all_of(box.box, [](float side) { return std::isfinite(side); }) &&
         box.box[0] < box.box[2] && box.box[1] < box.box[3];
}

double intersection_over_union(const std::array<double, 4>& a, const std::array<double, 4>& b) {
  const auto area = [](double left, double top, double right, double bottom) {
    return std::max(0.0, right - left) * std::max(0.0, bottom - top);
  };
  const double both = area(std::max(a[0], b[0]), std::max(a[1], b[1]), std::min(a[2], b[2]), std::min(a[3], b[3]));
  const double either = area(a[0], a[1], a[2], a[3]) + area(b[0], b[1], b[2], b[3]) - both;
  return both > 0 ? both / either : 0;
}

}  // namespace

std::vector<std::optional<int64_t>> ByteTracker::update(std::span<const ScoredBox> boxes, int64_t frames) {
  boxes_ = boxes;
  const bool is_first = frame_ == 0;
  frame_ += frames;
  Indices high, low;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const double score = boxes[i].score;
    if (!is_usable(boxes[i])) continue;
    if (score > options_.high_score) high.push_back(i);
    if (score > options_.low_score && score < options_.high_score) low.push_back(i);
  }
  for (Track& track : tracks_) {
    track.box.reset();
    for (int64_t step = 0; step < frames && track.confirmed; ++step) predict(track);
  }
  const Indices unconfirmed = where([](const Track& track) { return !track.confirmed; });
  high = associate(where([](const Track& track) { return track.confirmed; }), high, kMaxFirstCost, true);
  associate(where([](const Track& track) { return track.confirmed && !track.lost && !track.box; }), low, kMaxSecondCost,
            false);
  high = associate(unconfirmed, high, kMaxUnconfirmedCost, true);
  end_tracks();
  for (const size_t box : high) {
    if (boxes[box].score >= options_.new_score) begin(box, is_first);
  }
  end_duplicates();
  std::vector<std::optional<int64_t>> ids(boxes.size());
  for (const Track& track : tracks_) {
    if (track.box && track.confirmed) ids[*track.box] = track.id;
  }
  return ids;
}

// The tracks that have a property.
ByteTracker::Indices ByteTracker::where(bool (*has)(const Track& track)) const {
  Indices found;
  for (size_t i = 0; i < tracks_.size(); ++i) {
    if (has(tracks_[i])) found.push_back(i);
  }
  return found;
}

// Gives boxes to tracks at the least total cost, where a track without a box costs as much as the largest cost that is
// permitted.  Returns the boxes that belong to no track.
ByteTracker::Indices ByteTracker::associate(const Indices& tracks, const Indices& boxes, double max_cost,
                                            bool with_score) {
  std::vector<double> costs;
  for (const size_t i : tracks) {
    const Track& track = tracks_[i];
    const std::array<double, 4> predicted = box_of(track);
    for (const size_t j : boxes) {
      const ScoredBox& box = boxes_[j];
      const std::array<double, 4> sides{box.box[0], box.box[1], box.box[2], box.box[3]};
      const double iou = track.label == box.label ? intersection_over_union(predicted, sides) : 0;
      costs.push_back(
          std::min(1 - iou * (with_score ? static_cast<double>(box.score) : 1), std::nextafter(max_cost, 1)));
    }
  }
  const std::vector<int64_t> box_of_track = linear_assignment(costs, std::ssize(tracks), std::ssize(boxes));
  Indices unmatched = boxes;
  for (size_t i = 0; i < tracks.size(); ++i) {
    if (box_of_track[i] < 0) continue;
    const auto j = static_cast<size_t>(box_of_track[i]);
    if (costs[i * boxes.size() + j] > max_cost) continue;
    tracks_[tracks[i]].box = boxes[j];
    correct(tracks_[tracks[i]], boxes_[boxes[j]]);
    std::erase(unmatched, boxes[j]);
  }
  return unmatched;
}

std::array<double, 4> ByteTracker::box_of(const Track& track) {
  const double height = track.state[kHeight].position, width = track.state[kAspect].position * height;
  const double left = track.state[0].position - width / 2, top = track.state[1].position - height / 2;
  return {left, top, left + width, top + height};
}

void ByteTracker::begin(size_t box, bool confirmed) {
  const std::array<double, 4> values = measured(boxes_[box]);
  const double height = values[kHeight];
  Track track{.id = ++last_id_,
              .label = boxes_[box].label,
              .first_frame = frame_,
              .last_frame = frame_,
              .confirmed = confirmed,
              .box = box};
  for (size_t i = 0; i < track.state.size(); ++i) {
    track.state[i] = {
        .position = values[i],
        .position_variance = squared(noise_of(i, kAspectNoise, 2 * kPositionNoise, height)),
        .velocity_variance = squared(noise_of(i, kAspectVelocityNoise, 10 * kVelocityNoise, height)),
    };
  }
  tracks_.push_back(track);
}

// x ← F x, P ← F P Fᵀ + Q with F = [1 1; 0 1] of each coordinate.  The height of an object that is not seen stays.
void ByteTracker::predict(Track& track) {
  if (track.lost) track.state[kHeight].velocity = 0;
  const double height = track.state[kHeight].position;
  for (size_t i = 0; i < track.state.size(); ++i) {
    Coordinate& c = track.state[i];
    c.position += c.velocity;
    c.position_variance +=
        2 * c.covariance + c.velocity_variance + squared(noise_of(i, kAspectNoise, kPositionNoise, height));
    c.covariance += c.velocity_variance;
    c.velocity_variance += squared(noise_of(i, kAspectVelocityNoise, kVelocityNoise, height));
  }
}

// K = P Hᵀ / S with S = H P Hᵀ + R and H = [1 0]; x ← x + K (z − H x), P ← P − K S Kᵀ.
void ByteTracker::correct(Track& track, const ScoredBox& box) {
  const std::array<double, 4> values = measured(box);
  const double height = track.state[kHeight].position;
  for (size_t i = 0; i < track.state.size(); ++i) {
    Coordinate& c = track.state[i];
    const double variance = c.position_variance + squared(noise_of(i, kMeasuredAspectNoise, kPositionNoise, height));
    const double gain = c.position_variance / variance, velocity_gain = c.covariance / variance;
    const double innovation = values[i] - c.position;
    c.position += gain * innovation;
    c.velocity += velocity_gain * innovation;
    c.position_variance -= gain * gain * variance;
    c.velocity_variance -= velocity_gain * velocity_gain * variance;
    c.covariance -= gain * velocity_gain * variance;
  }
  track.last_frame = frame_;
  track.confirmed = true;
  track.lost = false;
}

// Tracks that were not confirmed, and those that have been without a box for long.
void ByteTracker::end_tracks() {
  for (Track& track : tracks_) track.lost = !track.box;
  std::erase_if(tracks_, [&](const Track& track) {
    return track.lost && (!track.confirmed || frame_ - track.last_frame > options_.max_lost);
  });
}

// A lost track and another one in the same place are one: that which was seen for longer remains.
void ByteTracker::end_duplicates() {
  std::vector<bool> ends(tracks_.size());
  const auto age = [](const Track& track) { return track.last_frame - track.first_frame; };
  for (size_t i = 0; i < tracks_.size(); ++i) {
    for (size_t j = 0; j < tracks_.size(); ++j) {
      const Track &seen = tracks_[i], &lost = tracks_[j];
      if (seen.lost || !lost.lost || seen.label != lost.label) continue;
      if (!(intersection_over_union(box_of(seen), box_of(lost)) > kDuplicateIou)) continue;
      ends[age(seen) > age(lost) ? j : i] = true;
    }
  }
  size_t i = 0;
  std::erase_if(tracks_, [&](const Track&) { return ends[i++]; });
}

}  // namespace vitrail::analysis
