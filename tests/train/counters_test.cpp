// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/counters_internal.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/full_disk.h"
#include "tests/train/training_fixture.h"
#include "vitrail/train/objectives/segmentation/segmentation_internal.h"
#include "vitrail/train/recipe/checked_json_internal.h"
#include "vitrail/train/run/append_only_file_internal.h"
#include "vitrail/train/run/event_file_internal.h"
#include "vitrail/train/run/metrics_file_internal.h"
#include "vitrail/train/run/metrics_log_internal.h"

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
                                  .train = evaluation_with(1.25, {0.1}),
                                  .validation = evaluation_with(1.5, {0.2, 0.3}, 13),
                                  .average = evaluation_with(1.75, {0.4, 0.5}, 13),
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
  counters.test = evaluation_with(24.5, {0.6, 0.7}, 25);
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
  EXPECT_EQ(read.best.score, 0.25);
  EXPECT_EQ(read.best.loss, 0.75);
  EXPECT_EQ(read.best_epoch, 11);
  EXPECT_TRUE(read.best_is_average);
  ASSERT_EQ(read.history.size(), 2u);
  EXPECT_EQ(read.history[0].average.value().scores[1].value, 0.5);
  EXPECT_EQ(read.history[0].validation.value().images, 13);
  EXPECT_TRUE(read.history[0].best);
  EXPECT_FALSE(read.history[1].validation || read.history[1].average || read.history[1].best);
  EXPECT_EQ(read.skipped_images, 14);
  EXPECT_EQ(read.skipped_steps, 15);
  EXPECT_EQ(read.skipped_in_a_row, 16);
  EXPECT_EQ(read.communication.waited, 20.5);
  EXPECT_EQ(read.event_name, "events.out.tfevents.23");
  EXPECT_TRUE(read.tested);
  EXPECT_EQ(read.test.images, 25);
}

TEST(Counters, OfOldCheckpointsLackSomeFields) {
  auto json = nlohmann::ordered_json::parse(full_counters().to_json());
  for (const char* name : {"best_loss", "exchange", "test_images"}) json.erase(name);
  json["history"][0].erase("val_images");
  const Counters read = Counters::from_json(json.dump());
  EXPECT_TRUE(std::isnan(read.best.loss)) << "of equal accuracies the earlier epoch was kept";
  EXPECT_EQ(read.communication.seconds, 0);
  EXPECT_EQ(read.test.images, 0);
  EXPECT_EQ(read.history[0].validation->images, 0);
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
  EXPECT_EQ(tested(counters, 30).images, 30);
  counters.history = {EpochResult{.validation = Evaluation{.images = 28}},
                      EpochResult{.validation = Evaluation{.images = 27}}, EpochResult{}};
  counters.test.images = 26;
  EXPECT_EQ(validated_images(counters, 30), 27);
  EXPECT_EQ(tested(counters, 30).images, 26);
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
    MetricsFile file(path, 0, kAccuracies);
    file.add({.event = "train", .step = 7, .epoch = 0.12345, .loss = 0.1, .learning_rate = 1e-20, .seconds = 1.005});
    file.add({.event = "val",
              .step = 8,
              .epoch = 2,
              .loss = 1.0 / 3,
              .scores = {0.5, 1},
              .gradient_norm = 2.5,
              .images_per_second = 10.06,
              .data_wait = 0.12344});
  }
  const std::string header =
      "event,step,epoch,loss,top1,top5,learning_rate,gradient_norm,images_per_second,data_wait,seconds\n";
  const std::string rows =
      "train,7,0.1235,0.1,,,1e-20,,,,1.00\nval,8,2.0000,0.3333333333333333,0.5,1,,2.5,10.1,0.1234,\n";
  EXPECT_EQ(read_text(path), header + rows);
  MetricsFile again(path, header.size(), kAccuracies);
  EXPECT_EQ(again.flush(), header.size());
  EXPECT_EQ(read_text(path), header) << "no second one";
}

// A copy that was cut, or a power cut: whole rows stay.
TEST(MetricsLog, ContinuesAfterTheLastWholeRow) {
  const fs::path folder = testing::scratch_folder();
  Counters counters;
  {
    MetricsLog log(folder, counters, kAccuracies);
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
    const MetricsLog log(folder, resumed, kAccuracies);
    ASSERT_EQ(log.notes().size(), 1u) << length;
    EXPECT_TRUE(contains(log.notes()[0], str("has ", length, " of ", whole.size(), " bytes"))) << log.notes()[0];
    const std::string kept = read_text(folder / "metrics.csv"), header = whole.substr(0, whole.find('\n') + 1);
    EXPECT_EQ(kept, length >= last ? whole.substr(0, last) : header) << length;
  }
  write_file(folder / "metrics.csv", whole + "train,4,");
  Counters resumed = counters;
  EXPECT_TRUE(MetricsLog(folder, resumed, kAccuracies).notes().empty());
  EXPECT_EQ(read_text(folder / "metrics.csv"), whole) << "rows after the checkpoint are written again";
}

// Before the test there are two scores, whatever the objective's metrics.
TEST(Counters, OfMoreMetricsAreReadBeforeTheTest) {
  const std::vector<Metric> metrics(4);
  const Counters before;
  EXPECT_FALSE(Counters::from_json(before.to_json(), metrics).tested);
  Counters after;
  after.tested = true;
  after.test = {0.5, 7, scores_of(metrics, {0.1, 0.2, 0.3, 0.4}, 7)};
  EXPECT_EQ(Counters::from_json(after.to_json(), metrics).test.scores.at(3).value, 0.4);
}

TEST(Counters, AreWrittenInOneOrderWithAllFields) {
  EXPECT_EQ(full_counters().to_json(),
            R"({"epoch":[1.5,2,3,4.5,5],"interval":[6.5,7,8,9.5,10],"best_top1":0.25,"best_loss":0.75,)"
            R"("best_epoch":11,"best_is_average":true,"history":[)"
            R"({"epoch":1,"step":12,"train_loss":1.25,"train_top1":0.1,"val_loss":1.5,"val_top1":0.2,"val_top5":0.3,)"
            R"("val_images":13,"ema_loss":1.75,"ema_top1":0.4,"ema_top5":0.5,"validated":true,"has_ema":true,)"
            R"("best":true,"seconds":2.5},)"
            R"({"epoch":2,"step":0,"train_loss":0.0,"train_top1":0.0,"val_loss":0.0,"val_top1":0.0,"val_top5":0.0,)"
            R"("val_images":0,"ema_loss":0.0,"ema_top1":0.0,"ema_top5":0.0,"validated":false,"has_ema":false,)"
            R"("best":false,"seconds":0.0}],"skipped_images":14,"skipped_steps":15,"skipped_in_a_row":16,)"
            R"("seconds":17.5,"metrics_bytes":21,"event_bytes":22,"event_name":"events.out.tfevents.23","tested":true,)"
            R"("exchange":[18.5,19.5,20.5],"test":[24.5,0.6,0.7],"test_images":25})");
  const Counters none;
  EXPECT_EQ(none.best.score, -1) << "nothing was validated";
  EXPECT_EQ(none.best_epoch, 0);
  EXPECT_EQ(Counters::from_json(none.to_json()).to_json(), none.to_json());
}

// Each value of its own where it belongs, from a text that another program could have written.
TEST(Counters, AreReadFromTheirFields) {
  const Counters read = Counters::from_json(full_counters().to_json());
  EXPECT_EQ(read.epoch.images, 3);
  EXPECT_EQ(read.epoch.gradient_norm, 4.5);
  EXPECT_EQ(read.epoch.steps, 5);
  EXPECT_EQ(read.interval.loss, 6.5);
  EXPECT_EQ(read.interval.correct, 7);
  const EpochResult& e = read.history[0];
  EXPECT_EQ(e.epoch, 1);
  EXPECT_EQ(e.step, 12);
  EXPECT_EQ(e.train.loss, 1.25);
  EXPECT_EQ(e.train.scores[0].value, 0.1);
  EXPECT_EQ(e.validation->loss, 1.5);
  EXPECT_EQ(e.validation->scores[0].value, 0.2);
  EXPECT_EQ(e.validation->scores[1].value, 0.3);
  EXPECT_EQ(e.average->loss, 1.75);
  EXPECT_EQ(e.average->scores[0].value, 0.4);
  EXPECT_EQ(e.seconds, 2.5);
  EXPECT_EQ(read.seconds, 17.5);
  EXPECT_EQ(read.communication.seconds, 18.5);
  EXPECT_EQ(read.communication.overlapped, 19.5);
  EXPECT_EQ(read.metrics_bytes, 21u);
  EXPECT_EQ(read.event_bytes, 22u);
  EXPECT_EQ(read.test.loss, 24.5);
  EXPECT_EQ(read.test.scores[0].value, 0.6);
  EXPECT_EQ(read.test.scores[1].value, 0.7);
}

// As many scores as an objective has, under its names.
TEST(Counters, HaveTheScoresOfTheObjective) {
  for (const size_t count : {1, 3}) {
    std::vector<Metric> metrics;
    std::vector<double> values;
    for (size_t i = 0; i < count; ++i) {
      metrics.push_back({.name = str("metric", i)});
      values.push_back(0.25 * static_cast<double>(i + 1));
    }
    Counters counters;
    counters.test = {0.5, 4, scores_of(metrics, values, 4)};
    counters.history.push_back({.epoch = 1, .validation = counters.test});
    const Counters read = Counters::from_json(counters.to_json(), metrics);
    EXPECT_EQ(read.to_json(), counters.to_json());
    for (const std::vector<Score>& scores : {read.test.scores, read.history[0].validation->scores}) {
      ASSERT_EQ(scores.size(), count);
      EXPECT_EQ(scores.back().name, str("metric", count - 1));
      EXPECT_EQ(scores.back().value, values.back());
      EXPECT_EQ(scores.back().images, 4);
    }
  }
}

TEST(Counters, OutOfRangeAreErrorsThatNameTheField) {
  using Json = nlohmann::ordered_json;
  const auto refusal = [](const char* pointer, const Json& value) {
    Json json = Json::parse(full_counters().to_json());
    json[Json::json_pointer(pointer)] = value;
    try {
      Counters::from_json(json.dump());
    } catch (const Error& error) {
      const std::string start = "checkpoint: expected the counters of a training run, got ", text = error.what();
      return text.starts_with(start) ? text.substr(start.size()) : "another error: " + text;
    }
    return std::string();
  };
  const std::string limits = "9007199254740992";  // 2^53
  for (const auto& [pointer, name] : {std::pair{"/best_epoch", "counters.best_epoch"},
                                      {"/skipped_images", "counters.skipped_images"},
                                      {"/metrics_bytes", "counters.metrics_bytes"},
                                      {"/test_images", "counters.test_images"},
                                      {"/history/0/step", "history.step"},
                                      {"/history/0/val_images", "history.val_images"},
                                      {"/epoch/2", "epoch[2]"},
                                      {"/interval/4", "interval[4]"}}) {
    EXPECT_EQ(refusal(pointer, -1), str(name, ": expected an integer from 0 to ", limits, ", got -1"));
    EXPECT_EQ(refusal(pointer, (int64_t{1} << 53) + 1),
              str(name, ": expected an integer from 0 to ", limits, ", got 9007199254740993"));
    EXPECT_EQ(refusal(pointer, int64_t{1} << 53), "") << name;
  }
  EXPECT_EQ(refusal("/epoch/1", 4), "epoch[1]: expected an integer from 0 to 3, got 4") << "of three images";
  EXPECT_EQ(refusal("/epoch/1", 3), "");
  EXPECT_EQ(refusal("/best_top1", -1.5), "counters.best_top1: expected a number from -1 to 1, or null, got -1.5");
  EXPECT_EQ(refusal("/best_top1", -1), "");
  EXPECT_EQ(refusal("/best_top1", 1), "");
  for (const char* name : {"train_top1", "val_top1", "val_top5", "ema_top1", "ema_top5"}) {
    const std::string pointer = str("/history/0/", name);
    EXPECT_EQ(refusal(pointer.c_str(), -0.5),
              str("history.", name, ": expected a number from 0 to 1, or null, got -0.5"));
    EXPECT_EQ(refusal(pointer.c_str(), 1.5),
              str("history.", name, ": expected a number from 0 to 1, or null, got 1.5"));
    EXPECT_EQ(refusal(pointer.c_str(), nullptr), "") << "not finite";
  }
  for (const char* name : {"train_loss", "val_loss", "ema_loss"})
    EXPECT_EQ(refusal(str("/history/0/", name).c_str(), -2.5), "") << "a loss has no limits";
  EXPECT_EQ(refusal("/test/1", 1.5), "test[1]: expected a number from 0 to 1, or null, got 1.5");
  EXPECT_EQ(refusal("/test/2", -0.5), "test[2]: expected a number from 0 to 1, or null, got -0.5");
  EXPECT_EQ(refusal("/test/0", 9.5), "");
  EXPECT_EQ(refusal("/seconds", nullptr), "counters.seconds: expected a number, got null");
  EXPECT_EQ(refusal("/history/0/seconds", nullptr), "history.seconds: expected a number, got null");
  EXPECT_EQ(refusal("/epoch/0", nullptr), "epoch[0]: expected a number, got null");
  EXPECT_EQ(refusal("/epoch/3", nullptr), "epoch[3]: expected a number, got null");
  EXPECT_EQ(refusal("/exchange/2", nullptr), "exchange[2]: expected a number, got null");
  EXPECT_EQ(refusal("/test", Json::array({1, 2})), "test: expected an array of 3 numbers, got [1,2]");
  EXPECT_EQ(refusal("/exchange", Json::array({1})), "exchange: expected an array of 3 numbers, got [1]");
  EXPECT_EQ(refusal("/epoch", Json::array({1})), "epoch: expected an array of 5 numbers, got [1]");
  EXPECT_EQ(refusal("/interval", 7), "interval: expected an array of 5 numbers, got 7");
}

TEST(Counters, AnEventNameIsThatOfAnEventFile) {
  const auto read = [](const std::string& name) {
    Counters counters = full_counters();
    counters.event_name = name;
    return Counters::from_json(counters.to_json()).event_name;
  };
  const std::string prefix = "events.out.tfevents.";
  for (const std::string& name : {std::string(), prefix, prefix + "09AZaz.-_", prefix + std::string(80, 'x')})
    EXPECT_EQ(read(name), name);
  for (const std::string& name :
       {prefix + std::string(81, 'x'), prefix + "a/b", prefix + " ", prefix + "é", prefix + ":", prefix + "@",
        prefix + "[", prefix + "`", prefix + "{", std::string("events.out.tfevent"), "x" + prefix + "1"}) {
    const std::string message = error_of([&] { read(name); });
    EXPECT_TRUE(contains(message, "event_name: expected the name of a TensorBoard file, events.out.tfevents.…, got \""))
        << message;
  }
}

TEST(CheckedJson, MessagesNameTheValueAndItsRange) {
  using Json = nlohmann::ordered_json;
  const Json object{{"n", 7}, {"x", 0.5}, {"nothing", nullptr}, {"yes", true}, {"text", "t"}, {"list", {1, 2.5, -3}}};
  const CheckedObject values(object, "at");
  EXPECT_EQ(values.count("n"), 7);
  EXPECT_EQ(values.count("n", 7, 7), 7);
  EXPECT_EQ(error_of([&] { values.count("n", 6); }), "at.n: expected an integer from 0 to 6, got 7");
  EXPECT_EQ(error_of([&] { values.count("n", 9, 8); }), "at.n: expected an integer from 8 to 9, got 7");
  EXPECT_EQ(values.number("x"), 0.5);
  EXPECT_EQ(error_of([&] { values.number("x", 1, 2); }), "at.x: expected a number from 1 to 2, or null, got 0.5");
  EXPECT_TRUE(std::isnan(values.number("nothing")));
  EXPECT_EQ(error_of([&] { values.finite("nothing"); }), "at.nothing: expected a number, got null");
  EXPECT_TRUE(values.boolean("yes"));
  EXPECT_EQ(values.text("text"), "t");
  const CheckedArray list(object["list"], "list", 3);
  EXPECT_EQ(list.count(0), 1);
  EXPECT_EQ(list.count(0, 1), 1);
  EXPECT_EQ(list.number(1), 2.5);
  EXPECT_EQ(list.finite(2), -3);
  EXPECT_EQ(error_of([&] { list.count(1); }), "list[1]: expected an integer from 0 to 9007199254740992, got 2.5");
  EXPECT_EQ(error_of([&] { list.count(2); }), "list[2]: expected an integer from 0 to 9007199254740992, got -3");
  EXPECT_EQ(error_of([&] { list.count(0, 0); }), "list[0]: expected an integer from 0 to 0, got 1");
  EXPECT_EQ(error_of([&] { list.number(2, -2, 2); }), "list[2]: expected a number from -2 to 2, or null, got -3");
  const std::string shown = "\"" + std::string(59, 'y');
  EXPECT_EQ(error_of([&] { checked_count(Json(std::string(80, 'y')), "v", 0, 1); }),
            "v: expected an integer from 0 to 1, got " + shown);
  EXPECT_EQ(error_of([&] { checked_number(Json(std::string(80, 'y')), "v", 0, 1); }),
            "v: expected a number from 0 to 1, or null, got " + shown);
  EXPECT_EQ(error_of([&] { CheckedArray(Json(std::string(80, 'y')), "v", 2); }),
            "v: expected an array of 2 numbers, got " + shown);
}

TEST(AppendOnlyFile, WritesAtTheEndWhateverItsLength) {
  const fs::path path = testing::scratch_folder() / "log";
  AppendOnlyFile file(path, 0);
  EXPECT_EQ(read_text(path), "");
  file.write("ab");
  file.write("");
  file.write(std::string(3, '\0'));
  EXPECT_EQ(file.sync(), 5u);
  write_file(path, "other");  // another program
  file.write("c");
  EXPECT_EQ(read_text(path), "otherc");
  const std::string large(3 << 20, 'x');
  fs::remove(path);
  write_file(path, large + "y");
  fs::create_hard_link(path, path.parent_path() / "second");
  AppendOnlyFile copy(path, large.size());
  EXPECT_EQ(read_text(path), large) << "copied in several parts";
  EXPECT_EQ(fs::file_size(path.parent_path() / "second"), large.size() + 1);
}

TEST(AppendOnlyFile, AFullDiskIsAnErrorThatNamesTheFile) {
  const fs::path path = testing::scratch_folder() / "log";
  AppendOnlyFile file(path, 0);
  std::string message;
  {
    const testing::FullDisk full(4);
    message = error_of([&] { file.write("12345"); });
  }
  EXPECT_TRUE(message.starts_with(path.string() + ": write failed: ")) << message;
  EXPECT_EQ(read_text(path), "1234");
  EXPECT_EQ(file.sync(), 4u);
  const std::string shorter = error_of([&] { AppendOnlyFile(path, 5); });
  EXPECT_EQ(shorter, path.string() + ": expected at least 5 bytes, as the checkpoint says, got 4");
  fs::create_symlink(path, path.parent_path() / "link");
  EXPECT_EQ(error_of([&] { AppendOnlyFile(path.parent_path() / "link", 0); }),
            (path.parent_path() / "link").string() + ": expected a regular file, got a symbolic link");
  EXPECT_TRUE(error_of([&] {
                AppendOnlyFile("/dev/null", 0);
              }).ends_with("/dev/null: expected a regular file, got another kind of file"));
}

TEST(MetricsFile, HasTheNamesOfItsMetrics) {
  const fs::path folder = testing::scratch_folder();
  for (const auto& [names, columns] : {std::pair{classification_metrics(true).each, "map,f1"},
                                       {segmentation_metrics().each, "click_iou,box_iou"},
                                       {kAccuracies, "top1,top5"}}) {
    fs::remove(folder / "m.csv");
    const uint64_t length = MetricsFile(folder / "m.csv", 0, names).flush();
    EXPECT_EQ(length, fs::file_size(folder / "m.csv"));
    EXPECT_EQ(read_text(folder / "m.csv"), str("event,step,epoch,loss,", columns,
                                               ",learning_rate,gradient_norm,images_per_second,data_wait,seconds\n"));
  }
}

TEST(MetricsFile, HasEachValueInItsColumn) {
  const fs::path path = testing::scratch_folder() / "m.csv";
  write_file(path, "h\n");
  MetricsFile file(path, 2, kAccuracies);
  file.add({.event = "e",
            .step = 1,
            .epoch = 2.00004,
            .loss = -0.1,
            .scores = {0.3, 0.7},
            .learning_rate = 1e-5,
            .gradient_norm = 100,
            .images_per_second = 12.34,
            .data_wait = 0.00006,
            .seconds = 9.876});
  EXPECT_EQ(read_text(path), "h\ne,1,2.0000,-0.1,0.3,0.7,1e-05,100,12.3,0.0001,9.88\n");
}

TEST(MetricsLog, NamesItsFilesAndKeepsTheirLengths) {
  const fs::path folder = testing::scratch_folder();
  Counters counters;
  MetricsLog log(folder, counters, kAccuracies);
  log.add({.event = "train", .step = 1});
  EXPECT_EQ(counters.metrics_bytes, 0u) << "until they are on the disk";
  log.flush(counters);
  EXPECT_TRUE(counters.event_name.starts_with("events.out.tfevents.")) << counters.event_name;
  EXPECT_TRUE(counters.event_name.ends_with(".vitrail")) << counters.event_name;
  const fs::path events = folder / "tensorboard" / counters.event_name;
  EXPECT_EQ(counters.metrics_bytes, fs::file_size(folder / "metrics.csv"));
  EXPECT_EQ(counters.event_bytes, fs::file_size(events));
  EXPECT_NE(counters.metrics_bytes, counters.event_bytes);
  Counters same = counters;
  EXPECT_TRUE(MetricsLog(folder, same, kAccuracies).notes().empty());
  EXPECT_EQ(same.event_name, counters.event_name);
  for (const bool absent : {false, true}) {
    absent ? static_cast<void>(fs::remove(events)) : fs::resize_file(events, counters.event_bytes - 1);
    Counters resumed = counters;
    const MetricsLog again(folder, resumed, kAccuracies);
    EXPECT_EQ(again.notes(), (std::vector<std::string>{events.string() + " is absent or shorter than the checkpoint "
                                                                         "says: a new event file continues it"}));
    EXPECT_EQ(resumed.event_bytes, 0u);
    EXPECT_TRUE(resumed.event_name.ends_with(".vitrail"));
  }
  fs::remove_all(folder / "tensorboard");
  write_file(folder / "tensorboard", "a file");
  Counters none;
  EXPECT_TRUE(contains(error_of([&] { MetricsLog(folder, none, kAccuracies); }), "tensorboard: cannot be created: "));
}

TEST(MetricsLog, NotesWhatIsLost) {
  const fs::path folder = testing::scratch_folder();
  write_file(folder / "metrics.csv", "head\nrow\nhal");
  Counters counters;
  counters.metrics_bytes = 20;
  const MetricsLog log(folder, counters, kAccuracies);
  EXPECT_EQ(log.notes(),
            (std::vector<std::string>{(folder / "metrics.csv").string() +
                                      " has 12 of 20 bytes that the checkpoint counts: its last rows are lost, the "
                                      "training is not"}));
  EXPECT_EQ(read_text(folder / "metrics.csv"), "head\nrow\n");
}

}  // namespace
}  // namespace vitrail::train
