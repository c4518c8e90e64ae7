// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/counters_internal.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/train/training_fixture.h"
#include "vitrail/train/append_only_file_internal.h"
#include "vitrail/train/checked_json_internal.h"
#include "vitrail/train/event_file_internal.h"
#include "vitrail/train/metrics_file_internal.h"
#include "vitrail/train/metrics_log_internal.h"
#include "vitrail/train/multi_label_internal.h"
#include "vitrail/train/unreadable_images_internal.h"

namespace vitrail::train {
namespace {

// Each field with a value of its own.
Counters full_counters() {
  Counters counters;
  counters.epoch = {1.5, 2, 3, 4.5, 5};
  counters.interval = {6.5, 7, 8, 9.5, 10};
  counters.best = {0.25, 0.75};
  counters.best_epoch = 11;
  counters.best_is_average = true;
  counters.history = {EpochResult{.epoch = 1,
                                  .step = 12,
                                  .train_loss = 1.25,
                                  .train_top1 = 0.1,
                                  .val_loss = 1.5,
                                  .val_top1 = 0.2,
                                  .val_top5 = 0.3,
                                  .ema_loss = 1.75,
                                  .ema_top1 = 0.4,
                                  .ema_top5 = 0.5,
                                  .val_images = 13,
                                  .validated = true,
                                  .has_ema = true,
                                  .best = true,
                                  .seconds = 2.5},
                      EpochResult{.epoch = 2}};
  counters.skipped_images = 14;
  counters.skipped_steps = 15;
  counters.skipped_in_a_row = 16;
  counters.seconds = 17.5;
  counters.communication = {18.5, 19.5, 20.5};
  counters.metrics_bytes = 21;
  counters.event_bytes = 22;
  counters.event_name = "events.out.tfevents.23";
  counters.tested = true;
  counters.test_loss = 24.5;
  counters.test_top1 = 0.6;
  counters.test_top5 = 0.7;
  counters.test_images = 25;
  return counters;
}

TEST(Counters, AllFieldsAreWrittenAndRead) {
  const Counters counters = full_counters(), read = Counters::from_json(counters.to_json());
  EXPECT_EQ(read.to_json(), counters.to_json());
  EXPECT_NE(read.to_json(), Counters().to_json());
  EXPECT_EQ(read.epoch.loss, 1.5);
  EXPECT_EQ(read.epoch.correct, 2);
  EXPECT_EQ(read.interval.images, 8);
  EXPECT_EQ(read.interval.gradient_norm, 9.5);
  EXPECT_EQ(read.interval.steps, 10);
  EXPECT_EQ(read.best.top1, 0.25);
  EXPECT_EQ(read.best.loss, 0.75);
  EXPECT_EQ(read.best_epoch, 11);
  EXPECT_TRUE(read.best_is_average);
  ASSERT_EQ(read.history.size(), 2u);
  EXPECT_EQ(read.history[0].ema_top5, 0.5);
  EXPECT_EQ(read.history[0].val_images, 13);
  EXPECT_TRUE(read.history[0].validated && read.history[0].has_ema && read.history[0].best);
  EXPECT_FALSE(read.history[1].validated || read.history[1].has_ema || read.history[1].best);
  EXPECT_EQ(read.skipped_images, 14);
  EXPECT_EQ(read.skipped_steps, 15);
  EXPECT_EQ(read.skipped_in_a_row, 16);
  EXPECT_EQ(read.communication.waited, 20.5);
  EXPECT_EQ(read.event_name, "events.out.tfevents.23");
  EXPECT_TRUE(read.tested);
  EXPECT_EQ(read.test_images, 25);
}

TEST(Counters, OfOldCheckpointsLackSomeFields) {
  auto json = nlohmann::ordered_json::parse(full_counters().to_json());
  for (const char* name : {"best_loss", "exchange", "test_images"}) json.erase(name);
  json["history"][0].erase("val_images");
  const Counters read = Counters::from_json(json.dump());
  EXPECT_TRUE(std::isnan(read.best.loss)) << "of equal accuracies the earlier epoch was kept";
  EXPECT_EQ(read.communication.seconds, 0);
  EXPECT_EQ(read.test_images, 0);
  EXPECT_EQ(read.history[0].val_images, 0);
}

TEST(Counters, OfNothingAreZero) {
  const RunningSums sums;
  EXPECT_EQ(sums.mean_loss(), 0);
  EXPECT_EQ(sums.accuracy(), 0);
  EXPECT_EQ((RunningSums{.loss = 6, .correct = 3, .images = 4}).mean_loss(), 1.5);
  EXPECT_EQ((RunningSums{.loss = 6, .correct = 3, .images = 4}).accuracy(), 0.75);
}

TEST(CheckedJson, BoundsAreInclusive) {
  using Json = nlohmann::ordered_json;
  EXPECT_EQ(checked_count(Json(3), "n", 3, 7), 3);
  EXPECT_EQ(checked_count(Json(7), "n", 3, 7), 7);
  for (const Json& value : {Json(2), Json(8), Json(3.5), Json("3"), Json()})
    EXPECT_TRUE(contains(error_of([&] { checked_count(value, "n", 3, 7); }), "n: expected an integer from 3 to 7"));
  EXPECT_EQ(checked_number(Json(0), "n", 0, 1), 0);
  EXPECT_EQ(checked_number(Json(1), "n", 0, 1), 1);
  EXPECT_TRUE(std::isnan(checked_number(Json(), "n", 0, 1)));
  for (const Json& value : {Json(-0.1), Json(1.1), Json("1"), Json(true)})
    EXPECT_THROW(checked_number(value, "n", 0, 1), Error);
  EXPECT_EQ(checked_finite(Json(-2.5), "n"), -2.5);
  EXPECT_THROW(checked_finite(Json(), "n"), Error);
  for (const Json& value : {Json::array({1}), Json::array({1, 2, 3}), Json::object(), Json()})
    EXPECT_THROW(CheckedArray(value, "n", 2), Error);
}

TEST(CountsOfImages, AreThoseOfTheLastValidationAndOfTheTest) {
  Counters counters;
  EXPECT_EQ(validated_images(counters, 30), 30);
  EXPECT_EQ(tested_images(counters, 30), 30);
  counters.history = {EpochResult{.val_images = 28}, EpochResult{.val_images = 27}, EpochResult{}};
  counters.test_images = 26;
  EXPECT_EQ(validated_images(counters, 30), 27);
  EXPECT_EQ(tested_images(counters, 30), 26);
}

TEST(AppendOnlyFile, TellsItsLengthWithWhatItKeeps) {
  const fs::path path = testing::scratch_folder() / "log";
  EXPECT_EQ(AppendOnlyFile(path, 0).sync(), 0u);
  write_file(path, "0123456789");
  EXPECT_EQ(AppendOnlyFile(path, 10).sync(), 10u);
  EXPECT_EQ(AppendOnlyFile(path, 3).sync(), 3u);
  EXPECT_EQ(read_text(path), "012");
  EXPECT_TRUE(contains(error_of([&] { AppendOnlyFile(path, 4); }), "at least 4 bytes, as the checkpoint says, got 3"));
  EXPECT_EQ(read_text(path), "012") << "an error changes nothing";
}

TEST(AppendOnlyFile, AFileWithAnotherNameIsCopied) {
  const fs::path folder = testing::scratch_folder(), path = folder / "log", other = folder / "other";
  for (const uint64_t keep : {0, 4, 10}) {
    fs::remove(path);
    write_file(other, "0123456789");
    fs::create_hard_link(other, path);
    AppendOnlyFile file(path, keep);
    file.write("x");
    EXPECT_EQ(read_text(other), "0123456789");
    EXPECT_EQ(read_text(path), std::string("0123456789").substr(0, keep) + "x");
    EXPECT_EQ(file.sync(), keep + 1);
  }
}

TEST(EventFile, ContinuesWithoutASecondHeader) {
  const fs::path path = testing::scratch_folder() / "events";
  const auto scalar = [](EventFile& file) {
    file.add_scalar("a", 1, 2, 3);
    return file.flush();
  };
  EventFile first(path, 0);
  const uint64_t header = first.flush(), one = scalar(first);
  const std::string bytes = read_text(path);
  scalar(first);
  EventFile second(path, one);
  EXPECT_EQ(second.flush(), one);
  EXPECT_EQ(scalar(second), one + (one - header));
  EXPECT_EQ(read_text(path), bytes + bytes.substr(header));
}

TEST(MetricsFile, HasAHeaderAndEmptyFieldsForWhatIsUnknown) {
  const fs::path path = testing::scratch_folder() / "metrics.csv";
  {
    MetricsFile file(path, 0, metric_names(false));
    file.add({.event = "train", .step = 7, .epoch = 0.12345, .loss = 0.1, .learning_rate = 1e-20, .seconds = 1.005});
    file.add({.event = "val",
              .step = 8,
              .epoch = 2,
              .loss = 1.0 / 3,
              .top1 = 0.5,
              .top5 = 1,
              .gradient_norm = 2.5,
              .images_per_second = 10.06,
              .data_wait = 0.12344});
  }
  const std::string header =
      "event,step,epoch,loss,top1,top5,learning_rate,gradient_norm,images_per_second,data_wait,seconds\n";
  const std::string rows =
      "train,7,0.1235,0.1,,,1e-20,,,,1.00\nval,8,2.0000,0.3333333333333333,0.5,1,,2.5,10.1,0.1234,\n";
  EXPECT_EQ(read_text(path), header + rows);
  MetricsFile again(path, header.size(), metric_names(false));
  EXPECT_EQ(again.flush(), header.size());
  EXPECT_EQ(read_text(path), header) << "no second one";
}

// A copy that was cut, or a power cut: whole rows stay.
TEST(MetricsLog, ContinuesAfterTheLastWholeRow) {
  const fs::path folder = testing::scratch_folder();
  Counters counters;
  {
    MetricsLog log(folder, counters);
    EXPECT_TRUE(log.notes().empty());
    for (int64_t step = 1; step <= 3; ++step) log.add({.event = "train", .step = step});
    log.flush(counters);
  }
  const std::string whole = read_text(folder / "metrics.csv");
  ASSERT_EQ(counters.metrics_bytes, whole.size());
  const size_t last = whole.rfind('\n', whole.size() - 2) + 1;  // where the last row begins
  for (const size_t length : {last + 3, last, whole.size() - 1, size_t{5}, size_t{0}}) {
    write_file(folder / "metrics.csv", whole.substr(0, length));
    Counters resumed = counters;
    const MetricsLog log(folder, resumed);
    ASSERT_EQ(log.notes().size(), 1u) << length;
    EXPECT_TRUE(contains(log.notes()[0], str("has ", length, " of ", whole.size(), " bytes"))) << log.notes()[0];
    const std::string kept = read_text(folder / "metrics.csv"), header = whole.substr(0, whole.find('\n') + 1);
    EXPECT_EQ(kept, length >= last ? whole.substr(0, last) : header) << length;
  }
  write_file(folder / "metrics.csv", whole + "train,4,");
  Counters resumed = counters;
  EXPECT_TRUE(MetricsLog(folder, resumed).notes().empty());
  EXPECT_EQ(read_text(folder / "metrics.csv"), whole) << "rows after the checkpoint are written again";
}

}  // namespace
}  // namespace vitrail::train
