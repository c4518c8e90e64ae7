// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/throughput_meter_internal.h"

#include <gtest/gtest.h>

#include <thread>

namespace vitrail::train {
namespace {

// 10 s ago, but for the time that the test itself takes.
Clock::time_point ten_seconds_ago() { return Clock::now() - std::chrono::seconds(10); }

TEST(Progress, OfAnEvaluationIsThatOfItsSteps) {
  Progress progress;
  progress.step = 2;
  progress.steps = 8;
  fill(progress, ten_seconds_ago(), 400);  // 400 images in 8 steps of 5 s
  EXPECT_NEAR(progress.images_per_second, 10, 1);
  EXPECT_NEAR(progress.seconds_left, 30, 3);
  progress.step = 8;
  fill(progress, ten_seconds_ago(), 400);
  EXPECT_NEAR(progress.images_per_second, 40, 4);
  EXPECT_EQ(progress.seconds_left, 0);
}

// The meter reads the clock between two readings of the test.
class MeterTest : public ::testing::Test {
 protected:
  Progress filled(int64_t batches_left, double waited) {
    Progress progress;
    before_ = meter_.seconds();
    meter_.fill(progress, batches_left, waited);
    after_ = meter_.seconds();
    return progress;
  }
  void expect_between(double value, double low, double high) {
    EXPECT_GE(value, low * (1 - 1e-9));
    EXPECT_LE(value, high * (1 + 1e-9));
  }
  ThroughputMeter meter_;
  double before_ = 0, after_ = 0;
};

TEST_F(MeterTest, TheTimeLeftIsThatOfTheBatchesLeft) {
  meter_.add_batch(8);
  meter_.add_batch(4);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const Progress progress = filled(10, 0.002);
  expect_between(progress.seconds_left, 5 * before_, 5 * after_);
  expect_between(progress.images_per_second, 12 / after_, 12 / before_);
  expect_between(progress.data_wait, 0.002 / after_, 0.002 / before_);
  EXPECT_EQ(filled(0, 0).seconds_left, 0);
}

// The time of evaluations is part of the time that is left, and not of the throughput.
TEST_F(MeterTest, EvaluationsAreNotTraining) {
  meter_.add_batch(10);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  meter_.add_evaluation(0.004);
  const Progress progress = filled(1, 0);
  expect_between(progress.images_per_second, 10 / (after_ - 0.004), 10 / (before_ - 0.004));
  expect_between(progress.seconds_left, before_, after_);
}

TEST(ThroughputMeter, ARowIsOfItsInterval) {
  ThroughputMeter meter;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  meter.begin_interval(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  MetricsRow row;
  meter.fill(row, 100, 3.01);
  EXPECT_LE(*row.images_per_second, 100 / 0.02);
  EXPECT_GT(*row.data_wait, 0);
  EXPECT_LE(*row.data_wait, 0.5);
  meter.fill(row, 100, 9);
  EXPECT_EQ(*row.data_wait, 1);
}

}  // namespace
}  // namespace vitrail::train
