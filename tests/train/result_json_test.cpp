// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/report/result_json.h"

#include <nlohmann/json.hpp>

#include "tests/train/training_fixture.h"
#include "vitrail/data/metrics/metrics.h"
#include "vitrail/train/objectives/segmentation/segmentation_internal.h"

namespace vitrail::train {
namespace {

using ParsedResult = nlohmann::json;

TrainingResult tested(const Metrics& metrics = classification_metrics(false)) {
  TrainingResult result;
  result.metrics = metrics.each;
  result.best = Score{metrics.each[0], 0.75, 40};
  result.best_epoch = 3;
  result.test = Evaluation{.loss = 9, .images = 16, .scores = scores_of(metrics.each, {0.5, 0.875}, 16)};
  return result;
}

// Before the first validation.
TrainingResult untested() {
  TrainingResult result;
  result.metrics = kAccuracies;
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
  for (const Metrics& metrics : {classification_metrics(true), segmentation_metrics()}) {
    const ParsedResult json = ParsedResult::parse(result_json(tested(metrics)));
    for (const auto& item : json.items()) {
      EXPECT_EQ(item.key().find("interval"), std::string::npos) << item.key();
      EXPECT_EQ(item.key().find("top1"), std::string::npos) << item.key();
    }
    EXPECT_EQ(json["held_out_images"], 40);
    EXPECT_EQ(json["test_images"], 16);
  }
}

TEST(ResultJson, WhatDoesNotExistIsNullOrAbsent) {
  TrainingResult result = untested();
  result.epoch = 2;
  result.step = 9;
  result.seconds = 1.5;
  const ParsedResult json = ParsedResult::parse(result_json(result));
  const ParsedResult expected{
      {"epochs", 2}, {"steps", 9}, {"held_out_top1", nullptr}, {"best_epoch", nullptr}, {"seconds", 1.5}};
  EXPECT_EQ(json, expected);
}

TEST(ResultJson, AStartThatIsKeptIsTheEpochZero) {
  TrainingResult result = tested();
  result.best_epoch = 0;
  EXPECT_TRUE(ParsedResult::parse(result_json(result))["best_epoch"].is_null());
  result.start = result.best;
  EXPECT_EQ(ParsedResult::parse(result_json(result))["best_epoch"], 0);
}

TEST(ResultJson, SkippedWorkAndProcessesAreSaidIfThereAreAny) {
  TrainingResult result = untested();
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
  TrainingResult result = untested();
  result.cross_validated = Score{kAccuracies[0], 0.25, 8};
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
  epoch.best = true;
  EXPECT_TRUE(ParsedResult::parse(epoch_json(epoch))["val_top1"].is_null());
  EXPECT_TRUE(ParsedResult::parse(epoch_json(epoch))["val_loss"].is_null());
  epoch.validation = evaluation_with(1.5, {0.5});
  EXPECT_EQ(ParsedResult::parse(epoch_json(epoch))["val_top1"], 0.5);
  EXPECT_EQ(ParsedResult::parse(epoch_json(epoch))["val_loss"], 1.5);
  EXPECT_EQ(ParsedResult::parse(epoch_json(epoch))["best"], true);
}

TEST(ResultJson, HasTheNamesOfItsMetrics) {
  const auto text = [](TrainingResult result) {
    result.epoch = 4;
    result.step = 21;
    result.seconds = 2.5;
    return result_json(result);
  };
  const auto interval = [](double fraction, int64_t images) {
    const data::Interval of = data::wilson_interval(fraction, images);
    return nlohmann::ordered_json{of.low, of.high}.dump();
  };
  EXPECT_EQ(text(tested()),
            R"({"epochs":4,"steps":21,"held_out_top1":0.75,"best_epoch":3,"seconds":2.5,"held_out_top1_interval":)" +
                interval(0.75, 40) + R"(,"held_out_images":40,"test_top1":0.5,"test_top1_interval":)" +
                interval(0.5, 16) + R"(,"test_top5":0.875,"test_top5_interval":)" + interval(0.875, 16) +
                R"(,"test_images":16})");
  EXPECT_EQ(text(tested(classification_metrics(true))),
            R"({"epochs":4,"steps":21,"held_out_map":0.75,"best_epoch":3,"seconds":2.5,"held_out_images":40,)"
            R"("test_map":0.5,"test_f1":0.875,"test_images":16})");
  TrainingResult masks = tested(segmentation_metrics());
  masks.test.reset();
  EXPECT_EQ(text(masks), R"({"epochs":4,"steps":21,"held_out_click_iou":0.75,"best_epoch":3,"seconds":2.5,)"
                         R"("held_out_images":40})");
}

TEST(ResultJson, OfOneProcessHasNoExchange) {
  TrainingResult result = untested();
  result.communication.seconds = 3;
  EXPECT_EQ(result_json(result), R"({"epochs":0,"steps":0,"held_out_top1":null,"best_epoch":null,"seconds":0.0})");
  EXPECT_FALSE(result.stopped || result.test);
  EXPECT_EQ(result.processes, 1);
}

TEST(EpochJson, HasEachValueUnderItsName) {
  EpochResult epoch;
  epoch.epoch = 2;
  epoch.step = 9;
  epoch.train = evaluation_with(1.5, {0.25});
  epoch.seconds = 8;
  EXPECT_EQ(epoch_json(epoch), R"({"epoch":2,"step":9,"train_loss":1.5,"train_top1":0.25,"val_loss":null,)"
                               R"("val_top1":null,"best":false,"seconds":8.0})");
  epoch.validation = evaluation_with(2.5, {0.75, 0.875});
  EXPECT_EQ(epoch_json(epoch), R"({"epoch":2,"step":9,"train_loss":1.5,"train_top1":0.25,"val_loss":2.5,)"
                               R"("val_top1":0.75,"best":false,"seconds":8.0})");
}

}  // namespace
}  // namespace vitrail::train
