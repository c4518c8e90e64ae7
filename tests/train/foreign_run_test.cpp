// SPDX-License-Identifier: Apache-2.0
// The folder of a run from elsewhere: its checkpoint and its links are not trusted.
#include <sys/stat.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/train/training_fixture.h"
#include "vitrail/train/run/append_only_file_internal.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/counters_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {
namespace {

using Json = nlohmann::ordered_json;

// A run that was stopped after a few steps.
class ForeignRun : public ::testing::Test {
 protected:
  void SetUp() override {
    recipe_ = parse_recipe(tiny_recipe(make_images()), "r.json");
    int steps = 0;
    TrainerCallbacks callbacks;
    callbacks.stop = [&] { return ++steps >= 13; };  // in the second epoch
    train(recipe_, {.folder = run_, .threads = 1}, callbacks);
    original_ = read_text(last());
    fs::remove(previous_checkpoint(last()));
  }

  fs::path last() const { return run_ / "checkpoints/last.safetensors"; }
  TrainingResult resume() const { return train(recipe_, {.folder = run_, .resume = true, .threads = 1}); }

  // Changes the checkpoint, with a right checksum.
  void tamper(const std::function<void(CheckpointState&)>& change) const {
    write_file(last(), original_);
    CheckpointState state = load_checkpoint(last());
    for (auto* tensors : {&state.model, &state.optimizer, &state.average}) {
      for (nn::NamedTensor& tensor : *tensors) tensor.tensor = tensor.tensor.clone();
    }
    change(state);
    fs::remove(last());
    save_checkpoint(last(), state);
  }

  void tamper_counters(const std::string& pointer, const Json& value) const {
    tamper([&](CheckpointState& state) {
      Json counters = Json::parse(state.counters);
      counters[Json::json_pointer(pointer)] = value;
      state.counters = counters.dump();
    });
  }

  const fs::path root_ = testing::scratch_folder(), run_ = root_ / "run";
  Recipe recipe_;
  std::string original_;
};

TEST_F(ForeignRun, TheUnchangedRunResumes) {
  tamper([](CheckpointState&) {});
  EXPECT_EQ(resume().step, 18);
}

TEST_F(ForeignRun, PositionsOutOfRangeAreErrors) {
  const int64_t huge = std::numeric_limits<int64_t>::max(), min = std::numeric_limits<int64_t>::min();
  for (const int64_t value : {int64_t{-1}, huge, min, int64_t{1} << 60}) {
    for (int64_t Position::*field :
         {&Position::epoch, &Position::step_in_epoch, &Position::step, &Position::batch_images}) {
      tamper([&](CheckpointState& state) { state.position.*field = value; });
      const std::string message = error_of([&] { resume(); });
      EXPECT_TRUE(contains(message, "last.safetensors") && contains(message, "position.")) << message;
    }
  }
}

TEST_F(ForeignRun, AStepBeyondTheEpochIsAnError) {
  tamper([](CheckpointState& state) { state.position.step_in_epoch = 7; });  // an epoch has 6
  const std::string message = error_of([&] { resume(); });
  EXPECT_TRUE(contains(message, "6")) << message;
}

TEST_F(ForeignRun, FingerprintsOutOfRangeAreErrors) {
  for (const int value : {-1, 0, std::numeric_limits<int>::max()}) {
    tamper([&](CheckpointState& state) { state.fingerprint.threads = value; });
    EXPECT_TRUE(contains(error_of([&] { resume(); }), "fingerprint.threads"));
  }
}

TEST_F(ForeignRun, CountersOutOfRangeAreErrors) {
  const std::vector<std::string> counts{"/best_epoch",      "/skipped_images", "/skipped_steps", "/skipped_in_a_row",
                                        "/metrics_bytes",   "/event_bytes",    "/epoch/1",       "/epoch/2",
                                        "/epoch/4",         "/interval/1",     "/interval/2",    "/interval/4",
                                        "/history/0/epoch", "/history/0/step"};
  for (const std::string& pointer : counts) {
    for (const Json& value : {Json(-1), Json(1.5), Json("1"), Json(nullptr), Json(1e300), Json(uint64_t{1} << 63)}) {
      tamper_counters(pointer, value);
      const std::string message = error_of([&] { resume(); });
      EXPECT_TRUE(contains(message, "the counters of a training run")) << pointer << " " << value << ": " << message;
    }
  }
  for (const char* pointer : {"/best_top1", "/history/0/val_top1", "/history/0/ema_top5", "/test/1"}) {
    tamper_counters(pointer, 1.5);
    EXPECT_TRUE(contains(error_of([&] { resume(); }), "from")) << pointer;
  }
  for (const char* pointer : {"/epoch", "/interval", "/test", "/exchange", "/history", "/history/0"}) {
    tamper_counters(pointer, Json::array({1}));
    EXPECT_TRUE(contains(error_of([&] { resume(); }), "counters of a training run")) << pointer;
  }
}

TEST_F(ForeignRun, ProgressBeyondThePositionIsAnError) {
  const auto message_of = [&](const std::string& pointer, const Json& value) {
    tamper_counters(pointer, value);
    return error_of([&] { resume(); });
  };
  EXPECT_TRUE(contains(message_of("/best_epoch", 3), "expected best weights of an epoch up to 2, got epoch 3"));
  const Json history = Json::parse(load_checkpoint(last()).counters)["history"];
  ASSERT_EQ(history.size(), 1u);
  EXPECT_TRUE(contains(message_of("/history", Json(1000, history[0])), "expected results of up to 2 epochs, got 1000"));
  for (const double seconds : {-1.0, 1e11}) EXPECT_TRUE(contains(message_of("/seconds", seconds), "seconds"));
  tamper([](CheckpointState& state) { state.position.epoch = 4; });  // the recipe has 3
  const std::string message = error_of([&] { resume(); });
  EXPECT_TRUE(contains(message, "expected a position in the 3 epochs of its recipe, got epoch 4")) << message;
}

TEST_F(ForeignRun, StatesOfTheOptimizerOutOfRangeAreErrors) {
  const auto message_of = [&](const std::string& part, float value) {
    tamper([&](CheckpointState& state) {
      for (nn::NamedTensor& tensor : state.optimizer) {
        if (tensor.name.find(part) != std::string::npos) tensor.tensor.contiguous().data<float>()[0] = value;
      }
    });
    return error_of([&] { resume(); });
  };
  EXPECT_TRUE(contains(message_of("exp_avg", NAN), "expected finite values"));
  EXPECT_TRUE(contains(message_of("exp_avg_sq", -1), "of at least 0, got negative values"));
  tamper([&](CheckpointState& state) {
    for (nn::NamedTensor& tensor : state.optimizer) {
      if (tensor.name == "step") tensor.tensor.data<int64_t>()[0] = -1;
    }
  });
  EXPECT_TRUE(contains(error_of([&] { resume(); }), "expected at least 0 steps, got -1"));
}

// The log is not worth the training: after a power cut, or where a user has deleted it, the run goes on.
TEST_F(ForeignRun, AShorterOrAbsentLogDoesNotEndTheRun) {
  const fs::path events = fs::directory_iterator(run_ / "tensorboard")->path();
  const std::string metrics = read_text(run_ / "metrics.csv"), first_row = metrics.substr(0, metrics.find('\n') + 1);
  ASSERT_TRUE(contains(metrics, "\n"));
  fs::remove(events);
  write_file(run_ / "metrics.csv", first_row + "train,1,0.1");  // ends within a row
  std::string messages;
  TrainerCallbacks callbacks;
  callbacks.message = [&](const std::string& line) { messages += line + "\n"; };
  EXPECT_EQ(train(recipe_, {.folder = run_, .resume = true, .threads = 1}, callbacks).step, 18);
  EXPECT_TRUE(contains(messages, "metrics.csv has " + std::to_string(first_row.size() + 11) + " of ")) << messages;
  EXPECT_TRUE(contains(messages, events.filename().string() + " is absent or shorter")) << messages;
  const std::string continued = read_text(run_ / "metrics.csv");
  EXPECT_EQ(continued.rfind(first_row, 0), 0u);
  EXPECT_FALSE(contains(continued, "train,1,0.1"));
  EXPECT_TRUE(contains(continued, ",18,")) << continued;
  for (const auto& entry : fs::directory_iterator(run_ / "tensorboard")) EXPECT_GT(fs::file_size(entry), 100u);
}

TEST_F(ForeignRun, AnAbsentLogBeginsAgainWithItsHeader) {
  const std::string metrics = read_text(run_ / "metrics.csv");
  fs::remove(run_ / "metrics.csv");
  fs::remove_all(run_ / "tensorboard");
  EXPECT_EQ(resume().step, 18);
  EXPECT_EQ(read_text(run_ / "metrics.csv").rfind(metrics.substr(0, metrics.find('\n') + 1), 0), 0u);
}

TEST_F(ForeignRun, AnEventFileElsewhereIsAnErrorAndKeepsItsBytes) {
  const fs::path victim = root_ / "victim.txt";
  write_file(victim, "precious");
  for (const std::string& name :
       {std::string("../../victim.txt"), victim.string(), std::string("events.out.tfevents./../../victim.txt"),
        std::string(".."), std::string("events.out.tfevents.1\n"), std::string("other")}) {
    tamper_counters("/event_name", name);
    const std::string message = error_of([&] { resume(); });
    EXPECT_TRUE(contains(message, "event_name")) << message;
    EXPECT_EQ(read_text(victim), "precious");
  }
}

TEST_F(ForeignRun, LinksAreErrorsAndTheirTargetsKeepTheirBytes) {
  const fs::path victim = root_ / "victim.txt", folder = root_ / "elsewhere";
  write_file(victim, "precious");
  fs::create_directories(folder);
  std::vector<fs::path> names{"recipe.json",
                              "metrics.csv",
                              "report.html",
                              "summary.json",
                              "model/config.json",
                              "model/model.safetensors",
                              "checkpoints/best.safetensors",
                              "checkpoints/ema.safetensors",
                              "checkpoints/previous.safetensors",
                              "checkpoints/last.safetensors.next",
                              "checkpoints/.lock",
                              "tensorboard",
                              "checkpoints",
                              "model"};
  for (const auto& entry : fs::directory_iterator(run_ / "tensorboard"))
    names.push_back(fs::path("tensorboard") / entry.path().filename());
  for (const fs::path& name : names) {
    for (const fs::path& target : {victim, folder, root_ / "absent"}) {
      const fs::path copy = root_ / "copy";
      fs::remove_all(copy);
      fs::copy(run_, copy, fs::copy_options::recursive);
      fs::remove_all(copy / name);
      fs::create_directories((copy / name).parent_path());
      fs::create_symlink(target, copy / name);
      const std::string message = error_of([&] { train(recipe_, {.folder = copy, .resume = true, .threads = 1}); });
      EXPECT_TRUE(contains(message, "symbolic link") && contains(message, name.filename().string())) << message;
      EXPECT_EQ(read_text(victim), "precious") << name;
      EXPECT_TRUE(fs::is_empty(folder)) << name;
      EXPECT_FALSE(fs::exists(root_ / "absent")) << name;
    }
  }
}

// Every file of the run has a second name outside, as after `cp -al`.
TEST_F(ForeignRun, HardLinksToItsFilesKeepTheirContent) {
  std::map<fs::path, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(run_)) {
    if (!entry.is_regular_file()) continue;
    const fs::path outside = root_ / "outside" / fs::relative(entry.path(), run_);
    fs::create_directories(outside.parent_path());
    fs::create_hard_link(entry.path(), outside);
    contents[outside] = read_text(outside);
  }
  EXPECT_GE(contents.size(), 5u);
  EXPECT_FALSE(resume().stopped);
  for (const auto& [outside, content] : contents) EXPECT_EQ(read_text(outside), content) << outside;
  EXPECT_GT(read_text(run_ / "metrics.csv").size(), contents.at(root_ / "outside/metrics.csv").size());
}

TEST_F(ForeignRun, NonFiniteWeightsAreErrorsThatNameTheTensor) {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    tamper([&](CheckpointState& state) { state.model[0].tensor.data<float>()[0] = value; });
    EXPECT_TRUE(contains(error_of([&] { resume(); }), load_checkpoint(last()).model[0].name));
    tamper([&](CheckpointState& state) { state.average[0].tensor.data<float>()[0] = value; });
    EXPECT_TRUE(contains(error_of([&] { resume(); }), "expected finite values"));
  }
}

TEST_F(ForeignRun, ARecipeThatIsNoneIsAnError) {
  for (const std::string& recipe : {std::string(), std::string("{")}) {
    tamper([&](CheckpointState& state) { state.recipe = recipe; });
    EXPECT_TRUE(contains(error_of([&] { resume(); }), "recipe: expected JSON"));
  }
  tamper([&](CheckpointState& state) { state.recipe = std::string(100'000, '[') + std::string(100'000, ']'); });
  EXPECT_TRUE(contains(error_of([&] { resume(); }), "at most 200 levels of nesting"));
}

TEST_F(ForeignRun, MisshapenAndMissingTensorsAreErrors) {
  tamper([](CheckpointState& state) { state.model[0].tensor = Tensor::zeros({1}); });
  EXPECT_TRUE(contains(error_of([&] { resume(); }), load_checkpoint(last()).model[0].name));
  tamper([](CheckpointState& state) { state.model.pop_back(); });
  EXPECT_TRUE(contains(error_of([&] { resume(); }), "tensors"));
  std::string missing;
  tamper([&](CheckpointState& state) {
    missing = state.optimizer.back().name;
    state.optimizer.pop_back();
  });
  EXPECT_TRUE(contains(error_of([&] { resume(); }), missing));
}

TEST(Counters, KeepValuesThatAreNotFiniteAsNaN) {
  Counters counters;
  counters.best = {0.5, std::numeric_limits<double>::quiet_NaN()};
  counters.history.push_back({.validation = Evaluation{.loss = std::numeric_limits<double>::infinity()}});
  const Counters read = Counters::from_json(counters.to_json());
  EXPECT_TRUE(std::isnan(read.best.loss));
  EXPECT_TRUE(std::isnan(read.history[0].validation->loss));
}

TEST(AppendOnlyFile, OpensOnlyRegularFiles) {
  const fs::path folder = testing::scratch_folder();
  fs::create_symlink(folder / "target", folder / "link");
  EXPECT_TRUE(contains(error_of([&] { AppendOnlyFile(folder / "link", 0); }), "symbolic link"));
  EXPECT_FALSE(fs::exists(folder / "target"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(contains(error_of([&] { AppendOnlyFile(folder / "pipe", 0); }), "regular file"));
  EXPECT_TRUE(contains(error_of([&] { AppendOnlyFile(folder, 0); }), folder.string()));
  EXPECT_TRUE(contains(error_of([&] { AppendOnlyFile(folder / std::string(300, 'n'), 0); }), "cannot be written"));
}

TEST(AppendOnlyFile, KeepsTheFirstBytesAndAppends) {
  const fs::path path = testing::scratch_folder() / "log";
  write_file(path, "0123456789");
  AppendOnlyFile file(path, 4);
  file.write("abc");
  EXPECT_EQ(read_text(path), "0123abc");
  EXPECT_EQ(file.sync(), 7u);
}

// A run that has trained for hours according to its checkpoint, so that the seconds of this test do not count.
class LongRun : public ::testing::Test {
 protected:
  // Trains two of the epochs, and says that the first one ended after `first` seconds, the second after `second`, and
  // that the whole run took `total` seconds.
  void train_two_epochs(double first, double second, double total, const std::vector<std::string>& settings = {}) {
    std::vector<std::string> all{"epochs=40", "ema=null"};
    all.insert(all.end(), settings.begin(), settings.end());
    recipe_ = parse_recipe(tiny_recipe(make_images()), "r.json", all);
    int epochs = 0;
    TrainerCallbacks callbacks;
    callbacks.epoch = [&](const EpochResult&) { ++epochs; };
    callbacks.stop = [&] { return epochs == 2; };  // after the first step of the third epoch
    train(recipe_, {.folder = run_, .threads = 1}, callbacks);
    const fs::path last = run_ / "checkpoints/last.safetensors";
    CheckpointState state = load_checkpoint(last);
    for (auto* tensors : {&state.model, &state.optimizer}) {
      for (nn::NamedTensor& tensor : *tensors) tensor.tensor = tensor.tensor.clone();
    }
    Json counters = Json::parse(state.counters);
    counters["history"][0]["seconds"] = first;
    counters["history"][1]["seconds"] = second;
    counters["seconds"] = total;
    state.counters = counters.dump();
    fs::remove(last);
    save_checkpoint(last, state);
  }

  // The epochs that a resumed run has, and what it says of them.
  int64_t epochs_within(double limit) {
    messages_.clear();
    TrainerCallbacks callbacks;
    callbacks.message = [&](const std::string& message) {
      if (contains(message, "expected")) messages_.push_back(message);
    };
    const TrainingResult result = train(
        recipe_, {.folder = run_, .resume = true, .allow_changes = true, .threads = 1, .time_limit = limit}, callbacks);
    EXPECT_EQ(read_recipe(run_ / "recipe.json").epochs, result.epoch);
    return result.epoch;
  }

  const fs::path run_ = testing::scratch_folder() / "run";
  Recipe recipe_;
  std::vector<std::string> messages_;
};

// Three epochs in 3000 s: 1000 s for each.  The test of 12 images beside 48 takes a quarter of a third of it.
TEST_F(LongRun, HasAsManyEpochsAsTheMeanOfThemAllows) {
  train_two_epochs(1000, 2990, 3000);
  EXPECT_EQ(epochs_within(3000 + 84 + 4 * 1000 + 500), 7);
  EXPECT_EQ(messages_,
            (std::vector<std::string>{"epochs take longer than expected: 7 instead of 40 for the time limit"}));
}

TEST_F(LongRun, CountsTheTimeOfItsLastEvaluation) {
  train_two_epochs(1000, 2990, 3000);
  EXPECT_EQ(epochs_within(3000 + 4 * 1000 + 70), 6) << "it takes 83 s";
}

TEST_F(LongRun, ExpectsEpochsThatAreAsSlowAsTheLast) {
  train_two_epochs(300, 600, 3000);  // the third epoch took 2400 s
  EXPECT_EQ(epochs_within(3000 + 200 + 2 * 2400 + 1000), 5);
}

TEST_F(LongRun, EndsAfterTheEpochForWhichThereWasNoTime) {
  train_two_epochs(1000, 2990, 3000);
  EXPECT_EQ(epochs_within(100), 3);
  EXPECT_EQ(messages_,
            (std::vector<std::string>{"epochs take longer than expected: 3 instead of 40 for the time limit"}));
}

TEST_F(LongRun, TrainsOnceMoreIfTheEpochWasNotValidated) {
  train_two_epochs(1000, 2990, 3000, {"validate_every=5"});
  EXPECT_EQ(epochs_within(100), 4);
}

TEST_F(LongRun, KeepsItsEpochsIfThereIsTime) {
  train_two_epochs(1000, 2990, 3000, {"epochs=4", "schedule.warmup_epochs=3.5"});
  EXPECT_EQ(epochs_within(1e6), 4);
  EXPECT_TRUE(messages_.empty());
  EXPECT_EQ(read_recipe(run_ / "recipe.json").schedule.warmup_epochs, 3.5);
}

TEST_F(LongRun, ShortensAWarmUpThatWouldBeLonger) {
  train_two_epochs(1000, 2990, 3000, {"schedule.warmup_epochs=20"});
  EXPECT_EQ(epochs_within(3000 + 84 + 500), 3);
  EXPECT_EQ(read_recipe(run_ / "recipe.json").schedule.warmup_epochs, 3);
}

}  // namespace
}  // namespace vitrail::train
