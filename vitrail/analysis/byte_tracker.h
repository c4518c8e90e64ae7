// SPDX-License-Identifier: Apache-2.0
#pragma once
// Identities of objects in a video, from the boxes that a detector finds in each frame.
//
// Source: Zhang et al. 2022, "ByteTrack: Multi-Object Tracking by Associating Every Detection Box", algorithm 1 and its
// code (BYTETracker), with the Kalman filter of DeepSORT (Wojke et al. 2017): constant velocity of centre, aspect ratio
// and height.
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace vitrail::analysis {

// A box of a frame.
struct ScoredBox {
  std::array<float, 4> box{};  // left, top, right, bottom in pixels
  float score = 0;             // 0 to 1
  int64_t label = 0;           // an object keeps its label
};

struct ByteTrackerOptions {
  double high_score = 0.5;  // boxes above it are associated first
  double low_score = 0.1;   // then those between both, with tracks that have no box yet; lower ones are left out
  double new_score = 0.6;   // a box of at least this score that belongs to no track begins one
  int64_t max_lost = 30;    // a track without a box ends after so many frames
};

// Costs are 1 − IoU, in the first round 1 − IoU · score.  A track that begins after the first frame is confirmed by a
// box in the next one, and has an identity from then on.
class ByteTracker {
 public:
  explicit ByteTracker(const ByteTrackerOptions& options = {}) : options_(options) {}

  // The identity of each box of the next frame, from 1; none for a box of no confirmed track, and for one without an
  // area.  frames: 1, and more if frames before it were left out.
  std::vector<std::optional<int64_t>> update(std::span<const ScoredBox> boxes, int64_t frames = 1);

 private:
  // Position, velocity in positions per frame, and the covariance of both.
  struct Coordinate {
    double position = 0, velocity = 0;
    double position_variance = 0, covariance = 0, velocity_variance = 0;
  };
  // The coordinates of the filter are independent of each other, because its noise is.
  struct Track {
    int64_t id = 0, label = 0;
    std::array<Coordinate, 4> state{};        // centre x, centre y, width / height, height
    int64_t first_frame = 0, last_frame = 0;  // with a box
    bool confirmed = false, lost = false;
    std::optional<size_t> box = {};  // in the current frame
  };
  using Indices = std::vector<size_t>;

  static std::array<double, 4> box_of(const Track& track);
  static void predict(Track& track);
  void begin(size_t box, bool confirmed);
  void correct(Track& track, const ScoredBox& box);
  Indices where(bool (*has)(const Track& track)) const;
  Indices associate(const Indices& tracks, const Indices& boxes, double max_cost, bool with_score);
  void end_tracks();
  void end_duplicates();

  ByteTrackerOptions options_;
  std::vector<Track> tracks_;
  int64_t frame_ = 0, last_id_ = 0;
  std::span<const ScoredBox> boxes_;  // boxes of the current frame
};

}  // namespace vitrail::analysis
