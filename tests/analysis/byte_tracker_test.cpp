// SPDX-License-Identifier: Apache-2.0
// ByteTrack against a reference with the whole matrices of its filter (tools/golden/byte_tracker.py), and its rules.
#include "vitrail/analysis/byte_tracker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/golden.h"
#include "tests/support/paths.h"

namespace vitrail::analysis {
namespace {

using TrackIds = std::vector<std::optional<int64_t>>;
constexpr std::optional<int64_t> kNoTrack;

TEST(ByteTracker, GivesTheIdentitiesOfTheReference) {
  const testing::Golden golden = testing::read_golden(testing::fixture("analysis/byte_tracker.safetensors"));
  size_t compared = 0;
  for (const std::string scene : {"few", "crowd", "labels", "fast", "still", "rough", "growing"}) {
    const auto of = [&](const char* name) { return golden[scene + name].data<int32_t>(); };
    const float* box = golden[scene + ".boxes"].data<float>();
    const int32_t *label = of(".labels"), *wanted = of(".ids");
    ByteTracker tracker;
    for (int64_t frame = 0; frame < golden[scene + ".counts"].numel(); ++frame) {
      std::vector<ScoredBox> boxes;
      for (int32_t i = 0; i < of(".counts")[frame]; ++i, box += 5)
        boxes.push_back({{box[0], box[1], box[2], box[3]}, box[4], *label++});
      for (const auto& id : tracker.update(boxes, of(".steps")[frame])) {
        EXPECT_EQ(id.value_or(0), *wanted++) << scene << ", frame " << frame;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 2239U);
}

ScoredBox box_at(float left, float score = 0.9F, int64_t label = 0) { return {{left, 0, left + 20, 40}, score, label}; }
TrackIds follow(ByteTracker& tracker, const std::vector<ScoredBox>& boxes, int64_t frames = 1) {
  return tracker.update(boxes, frames);
}

TEST(ByteTracker, AnUnsureBoxContinuesATrackAndBeginsNone) {
  ByteTracker tracker;
  EXPECT_EQ(follow(tracker, {box_at(0), box_at(100, 0.3F)}), (TrackIds{1, kNoTrack}));
  EXPECT_EQ(follow(tracker, {box_at(100, 0.3F), box_at(1, 0.3F)}), (TrackIds{kNoTrack, 1}));
  EXPECT_EQ(follow(tracker, {box_at(1, 0.05F)}), (TrackIds{kNoTrack})) << "below low_score";
}

TEST(ByteTracker, ATrackOfALaterFrameIsConfirmedByTheNext) {
  ByteTracker tracker;
  EXPECT_EQ(follow(tracker, {box_at(0)}), (TrackIds{1}));
  EXPECT_EQ(follow(tracker, {box_at(0), box_at(100)}), (TrackIds{1, kNoTrack}));
  EXPECT_EQ(follow(tracker, {box_at(0), box_at(100)}), (TrackIds{1, 2}));
}

TEST(ByteTracker, ALostTrackIsFoundAgainForAWhile) {
  for (const int64_t gap : {29, 30, 31}) {
    ByteTracker tracker({.max_lost = 30});
    follow(tracker, {box_at(0)});
    for (int64_t i = 0; i < gap; ++i) follow(tracker, {});
    EXPECT_EQ(follow(tracker, {box_at(0)}), (TrackIds{gap <= 30 ? std::optional<int64_t>(1) : kNoTrack})) << gap;
  }
}

TEST(ByteTracker, DroppedFramesCount) {
  ByteTracker dropped;
  for (int i = 0; i < 20; ++i) {
    const auto left = static_cast<float>(12 * i);
    if (i >= 10 && i % 5 != 4) continue;
    EXPECT_EQ(follow(dropped, {box_at(left)}, i < 10 ? 1 : 5), (TrackIds{1})) << i;
  }
  ByteTracker ignored;
  for (int i = 0; i < 10; ++i) follow(ignored, {box_at(static_cast<float>(12 * i))});
  EXPECT_EQ(follow(ignored, {box_at(12 * 14)}), (TrackIds{kNoTrack})) << "the box has moved too far for one frame";
}

TEST(ByteTracker, AnObjectKeepsItsLabel) {
  ByteTracker tracker;
  EXPECT_EQ(follow(tracker, {box_at(0, 0.9F, 0), box_at(0, 0.9F, 1)}), (TrackIds{1, 2}));
  EXPECT_EQ(follow(tracker, {box_at(0, 0.9F, 1), box_at(0, 0.9F, 0), box_at(0, 0.9F, 2)}), (TrackIds{2, 1, kNoTrack}));
}

TEST(ByteTracker, BoxesWithoutAreaHaveNoIdentity) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  ByteTracker tracker;
  EXPECT_EQ(follow(tracker, {{{0, 0, 0, 10}, 0.9F}, {{5, 5, 2, 10}, 0.9F}, {{0, 0, none, 10}, 0.9F}, box_at(0, none)}),
            (TrackIds{kNoTrack, kNoTrack, kNoTrack, kNoTrack}));
  EXPECT_EQ(follow(tracker, {box_at(0)}), (TrackIds{kNoTrack})) << "the first frame was another one";
  EXPECT_EQ(follow(tracker, {box_at(0)}), (TrackIds{1}));
}

}  // namespace
}  // namespace vitrail::analysis
