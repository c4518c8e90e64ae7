// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/report/result_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "vitrail/data/metrics/metrics.h"

namespace vitrail::train {
namespace {

using ParsedResult = nlohmann::json;

TrainingResult tested() {
  TrainingResult result;
  result.best_top1 = 0.75;
  result.validation_images = 40;
  result.best_epoch = 3;
  result.tested = true;
  result.test_top1 = 0.5;
  result.test_top5 = 0.875;
  result.test_images = 16;
  return result;
}

TEST(ResultJson, AccuraciesHaveTheirIntervals) {
  const ParsedResult json = ParsedResult::parse(result_json(tested()));
  EXPECT_EQ(json["held_out_top1"], 0.75);
  EXPECT_EQ(json["held_out_top1_interval"][0], data::wilson_interval(0.75, 40).low);
  EXPECT_EQ(json["held_out_top1_interval"][1], data::wilson_interval(0.75, 40).high);
  EXPECT_EQ(json["held_out_images"], 40);
  EXPECT_EQ(json["best_epoch"], 3);
  EXPECT_EQ(json["test_top1"], 0.5);
  EXPECT_EQ(json["test_top5"], 0.875);
  EXPECT_EQ(json["test_top5_interval"][1], data::wilson_interval(0.875, 16).high);
  EXPECT_EQ(json["test_images"], 16);
}

// Neither a mean average precision nor an IoU is a fraction of images.
TEST(ResultJson, OtherMetricsHaveNoIntervals) {
  for (const bool segmentation : {false, true}) {
    TrainingResult result = tested();
    (segmentation ? result.segmentation : result.multi_label) = true;
    const ParsedResult json = ParsedResult::parse(result_json(result));
    for (const auto& item : json.items()) {
      EXPECT_EQ(item.key().find("interval"), std::string::npos) << item.key();
      EXPECT_EQ(item.key().find("top1"), std::string::npos) << item.key();
    }
    EXPECT_EQ(json["held_out_images"], 40);
    EXPECT_EQ(json["test_images"], 16);
  }
}

TEST(ResultJson, WhatDoesNotExistIsNullOrAbsent) {
  TrainingResult result;
  result.epoch = 2;
  result.step = 9;
  result.seconds = 1.5;
  const ParsedResult json = ParsedResult::parse(result_json(result));
  const ParsedResult expected{
      {"epochs", 2}, {"steps", 9}, {"held_out_top1", nullptr}, {"best_epoch", nullptr}, {"seconds", 1.5}};
  EXPECT_EQ(json, expected);
}

TEST(ResultJson, SkippedWorkAndProcessesAreSaidIfThereAreAny) {
  TrainingResult result;
  result.skipped_images = 1;
  result.skipped_steps = 2;
  result.processes = 2;
  result.communication.seconds = 3;
  result.communication.overlapped = 2;
  result.communication.waited = 1;
  const ParsedResult json = ParsedResult::parse(result_json(result));
  EXPECT_EQ(json["skipped_images"], 1);
  EXPECT_EQ(json["skipped_steps"], 2);
  EXPECT_EQ(json["processes"], 2);
  EXPECT_EQ(json["exchange_seconds"], 3);
  EXPECT_EQ(json["exchange_overlapped_seconds"], 2);
  EXPECT_EQ(json["exchange_waited_seconds"], 1);
}

TEST(ResultJson, TheAccuracyOfACrossValidationHasItsImages) {
  TrainingResult result;
  result.cross_validated = {.top1 = 0.25, .images = 8};
  const ParsedResult json = ParsedResult::parse(result_json(result));
  EXPECT_EQ(json["cross_validated_top1"], 0.25);
  EXPECT_EQ(json["cross_validated_top1_interval"][0], data::wilson_interval(0.25, 8).low);
  EXPECT_EQ(json["cross_validated_images"], 8);
}

TEST(ProgressJson, NamesItsPhase) {
  using Phase = Progress::Phase;
  const std::pair<Phase, const char*> phases[] = {{Phase::train, "train"},
                                                  {Phase::validate, "validate"},
                                                  {Phase::test, "test"},
                                                  {Phase::features, "features"},
                                                  {Phase::search, "search"}};
  for (const auto& [phase, name] : phases) {
    Progress progress;
    progress.phase = phase;
    EXPECT_EQ(ParsedResult::parse(progress_json(progress))["phase"], name);
  }
  const Progress progress{.phase = Phase::train,
                          .epoch = 1,
                          .epochs = 2,
                          .step = 3,
                          .steps = 4,
                          .loss = 0.5,
                          .accuracy = std::numeric_limits<double>::quiet_NaN(),
                          .images_per_second = 6,
                          .seconds_left = 7};
  const ParsedResult expected{{"phase", "train"},   {"epoch", 1},  {"epochs", 2},         {"step", 3},
                              {"steps", 4},         {"loss", 0.5}, {"accuracy", nullptr}, {"images_per_second", 6.0},
                              {"seconds_left", 7.0}};
  EXPECT_EQ(ParsedResult::parse(progress_json(progress)), expected);
}

TEST(EpochJson, ValuesOfValidationAreNullWithoutOne) {
  EpochResult epoch;
  epoch.epoch = 2;
  epoch.val_top1 = 0.5;
  epoch.val_loss = 1.5;
  epoch.best = true;
  EXPECT_TRUE(ParsedResult::parse(epoch_json(epoch))["val_top1"].is_null());
  EXPECT_TRUE(ParsedResult::parse(epoch_json(epoch))["val_loss"].is_null());
  epoch.validated = true;
  EXPECT_EQ(ParsedResult::parse(epoch_json(epoch))["val_top1"], 0.5);
  EXPECT_EQ(ParsedResult::parse(epoch_json(epoch))["val_loss"], 1.5);
  EXPECT_EQ(ParsedResult::parse(epoch_json(epoch))["best"], true);
}

TEST(ResultJson, HasTheNamesOfItsMetrics) {
  TrainingResult result = tested();
  result.epoch = 4;
  result.step = 21;
  result.seconds = 2.5;
  result.test_loss = 9;
  const auto interval = [](double fraction, int64_t images) {
    const data::Interval of = data::wilson_interval(fraction, images);
    return nlohmann::ordered_json{of.low, of.high}.dump();
  };
  EXPECT_EQ(result_json(result),
            R"({"epochs":4,"steps":21,"held_out_top1":0.75,"best_epoch":3,"seconds":2.5,"held_out_top1_interval":)" +
                interval(0.75, 40) + R"(,"held_out_images":40,"test_top1":0.5,"test_top1_interval":)" +
                interval(0.5, 16) + R"(,"test_top5":0.875,"test_top5_interval":)" + interval(0.875, 16) +
                R"(,"test_images":16})");
  result.multi_label = true;
  EXPECT_EQ(result_json(result),
            R"({"epochs":4,"steps":21,"held_out_map":0.75,"best_epoch":3,"seconds":2.5,"held_out_images":40,)"
            R"("test_map":0.5,"test_f1":0.875,"test_images":16})");
  result.multi_label = false;
  result.segmentation = true;
  result.tested = false;
  EXPECT_EQ(result_json(result), R"({"epochs":4,"steps":21,"held_out_click_iou":0.75,"best_epoch":3,"seconds":2.5,)"
                                 R"("held_out_images":40})");
}

TEST(ResultJson, OfOneProcessHasNoExchange) {
  TrainingResult result;
  result.communication.seconds = 3;
  EXPECT_EQ(result_json(result), R"({"epochs":0,"steps":0,"held_out_top1":null,"best_epoch":null,"seconds":0.0})");
  EXPECT_FALSE(result.stopped || result.tested || result.multi_label || result.segmentation);
  EXPECT_EQ(result.processes, 1);
}

TEST(EpochJson, HasEachValueUnderItsName) {
  EpochResult epoch;
  epoch.epoch = 2;
  epoch.step = 9;
  epoch.train_loss = 1.5;
  epoch.train_top1 = 0.25;
  epoch.val_loss = 2.5;
  epoch.val_top1 = 0.75;
  epoch.val_top5 = 0.875;
  epoch.seconds = 8;
  EXPECT_EQ(epoch_json(epoch), R"({"epoch":2,"step":9,"train_loss":1.5,"train_top1":0.25,"val_loss":null,)"
                               R"("val_top1":null,"best":false,"seconds":8.0})");
  epoch.validated = true;
  EXPECT_EQ(epoch_json(epoch), R"({"epoch":2,"step":9,"train_loss":1.5,"train_top1":0.25,"val_loss":2.5,)"
                               R"("val_top1":0.75,"best":false,"seconds":8.0})");
}

}  // namespace
}  // namespace vitrail::train
