// SPDX-License-Identifier: Apache-2.0
// vitrail train, run as a program: interrupted, killed and resumed.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/metric_rows.h"
#include "tests/support/models.h"
#include "tests/train/semantic_fixture.h"
#include "vitrail/data/metrics/metrics.h"
#include "vitrail/train/run/checkpoint.h"

namespace vitrail::testing {
namespace fs = std::filesystem;
namespace {

using train::deterministic_columns;
using train::make_images;
using train::read_text;

std::string recipe_file(const fs::path& dataset) {
  const fs::path file = scratch_folder() / "recipe.json";
  train::write_file(file, train::tiny_recipe(dataset));
  return file.string();
}

std::vector<std::string> train_command(const std::string& recipe, const fs::path& run, bool resume = false) {
  std::vector<std::string> command{"train", recipe, "-o", run.string(), "--threads", "1"};
  for (const char* setting : {"epochs=12", "checkpoint.every_steps=1"}) {
    command.push_back("--set");
    command.push_back(setting);
  }
  if (resume) command.push_back("--resume");
  return command;
}

// A training of 1000 epochs that saves when it is stopped.
std::vector<std::string> long_training(const std::string& recipe, const fs::path& run) {
  std::vector<std::string> command = train_command(recipe, run);
  command.insert(command.end(), {"--set", "epochs=1000", "--set", "checkpoint.every_steps=0"});
  return command;
}

// The number of rows of a file; 0 if it does not exist.
size_t rows_of(const fs::path& csv) { return fs::exists(csv) ? lines_of(read_text(csv)).size() : 0; }

// The program, training in the background.
class Training {
 public:
  // `ignored`: a signal that the program ignores from its start, as nohup does with SIGHUP; 0: none.
  explicit Training(std::vector<std::string> command, int ignored = 0);
  // Waits until metrics.csv has `rows` rows or the program ends.
  void wait_for(const fs::path& run, size_t rows);
  void send(int signal) const { ::kill(child_, signal); }
  // The exit status, or 128 + n if signal n killed it.
  int status();

 private:
  pid_t child_ = -1;
  std::optional<int> status_;  // set when it has ended
};

Training::Training(std::vector<std::string> command, int ignored) {
  const std::string name = program().string();
  command.insert(command.begin(), name);
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::fflush(stdout);  // otherwise the child writes the buffered output again
  child_ = ::fork();
  if (child_ == 0) {
    // The tests may run under nohup.
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) {
      ::signal(signal, signal == ignored ? SIG_IGN : SIG_DFL);
    }
    const bool quiet = std::freopen("/dev/null", "w", stderr) && std::freopen("/dev/null", "w", stdout);
    if (quiet) ::execv(name.c_str(), argv.data());
    ::_exit(127);
  }
}

void Training::wait_for(const fs::path& run, size_t rows) {
  int status = 0;
  while (!status_ && rows_of(run / "metrics.csv") < rows) {
    if (::waitpid(child_, &status, WNOHANG) != 0) status_ = status;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int Training::status() {
  int status = 0;
  if (!status_ && ::waitpid(child_, &status, 0) == child_) status_ = status;
  return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 128 + WTERMSIG(*status_);
}

// Starts the program, waits until metrics.csv has `rows` rows, waits for `delay` and sends `signal`.
int run_and_signal(const std::vector<std::string>& command, const fs::path& run, size_t rows,
                   std::chrono::microseconds delay, int signal) {
  Training training(command);
  training.wait_for(run, rows);
  std::this_thread::sleep_for(delay);
  training.send(signal);
  return training.status();
}

void expect_same_checkpoints(const fs::path& a, const fs::path& b) {
  const auto first = train::load_checkpoint(a / "checkpoints/last.safetensors");
  const auto second = train::load_checkpoint(b / "checkpoints/last.safetensors");
  EXPECT_EQ(first.position.step, second.position.step);
  for (const auto& [x, y] :
       {std::pair{first.model, second.model}, {first.optimizer, second.optimizer}, {first.average, second.average}}) {
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t bytes = static_cast<size_t>(x[i].tensor.numel()) * size_of(x[i].tensor.dtype());
      EXPECT_EQ(0, std::memcmp(x[i].tensor.contiguous().raw(), y[i].tensor.contiguous().raw(), bytes)) << x[i].name;
    }
  }
}

TEST(Train, AKilledAndResumedRunEqualsAnUninterruptedOne) {
  const std::string recipe = recipe_file(make_images());
  const fs::path uninterrupted = scratch_folder() / "uninterrupted", resumed_run = scratch_folder() / "resumed";
  const ProgramResult result = run_program(train_command(recipe, uninterrupted));
  ASSERT_EQ(result.status, 0) << result.err;
  const size_t rows = rows_of(uninterrupted / "metrics.csv");  // one per step and per validation
  std::srand(static_cast<unsigned>(::getpid()));
  const int rounds = 6;
  for (size_t round = 0; round < rounds; ++round) {
    const size_t target = 1 + (round * (rows - 10) + static_cast<size_t>(std::rand()) % (rows - 10)) / rounds;
    const std::chrono::microseconds delay(std::rand() % 20000);
    EXPECT_EQ(run_and_signal(train_command(recipe, resumed_run, true), resumed_run, target, delay, SIGKILL),
              128 + SIGKILL);
  }
  const ProgramResult resumed = run_program(train_command(recipe, resumed_run, true));
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  expect_same_checkpoints(uninterrupted, resumed_run);
  EXPECT_EQ(deterministic_columns(uninterrupted / "metrics.csv"), deterministic_columns(resumed_run / "metrics.csv"));
  EXPECT_EQ(read_text(uninterrupted / "model/model.safetensors"), read_text(resumed_run / "model/model.safetensors"));
  for (const auto& entry : fs::recursive_directory_iterator(resumed_run))
    EXPECT_FALSE(contains(entry.path().filename().string(), ".tmp")) << entry.path();
}

TEST(Train, ASignalStopsAfterTheStepAndSavesACheckpoint) {
  const std::string recipe = recipe_file(make_images(200));
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) {
    const fs::path run = scratch_folder() / "run";
    EXPECT_EQ(run_and_signal(long_training(recipe, run), run, 4, std::chrono::microseconds(500), signal), 1);
    EXPECT_GT(train::load_checkpoint(run / "checkpoints/last.safetensors").position.step, 0) << strsignal(signal);
  }
}

TEST(Train, ASignalThatIsIgnoredFromTheStartStaysIgnored) {
  const std::string recipe = recipe_file(make_images(200));
  for (const int signal : {SIGHUP, SIGUSR1}) {
    const fs::path run = scratch_folder() / "run";
    Training training(long_training(recipe, run), signal);
    training.wait_for(run, 4);
    training.send(signal);
    training.wait_for(run, 100);  // an epoch has 75 steps; a stop would come after one
    EXPECT_GE(rows_of(run / "metrics.csv"), 100u) << strsignal(signal);
    training.send(SIGTERM);
    EXPECT_EQ(training.status(), 1);
    EXPECT_GT(train::load_checkpoint(run / "checkpoints/last.safetensors").position.step, 75);
  }
}

TEST(Train, PrintsItsMetricsAndWritesAModelThatClassifies) {
  const fs::path dataset = make_images(), run = scratch_folder() / "run";
  const ProgramResult result = run_program(train_command(recipe_file(dataset), run));
  ASSERT_EQ(result.status, 0) << result.err;
  const auto metrics = json_lines(result.out);
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics[0]["epochs"], 12);
  EXPECT_TRUE(contains(result.err, "epoch  12")) << result.err;
  EXPECT_FALSE(contains(result.err, "\r")) << "a progress bar without a terminal";

  const ProgramResult evaluation = run_program({"eval", "--format", "json", "-m", run / "model", dataset});
  ASSERT_EQ(evaluation.status, 0) << evaluation.err;
  EXPECT_EQ(json_lines(evaluation.out)[0]["top1"], metrics[0]["test_top1"]);
  const ProgramResult knn = run_program({"knn", "-m", run / "model", dataset, dataset, "--k", "5"});
  ASSERT_EQ(knn.status, 0) << knn.err;
  const auto votes = json_lines(knn.out)[0];
  EXPECT_EQ(votes["images"], 12);
  EXPECT_EQ(votes["training_images"], 60);
}

TEST(Train, AFolderNeedsNoRecipe) {
  const fs::path dataset = make_images(), run = scratch_folder() / "run";
  const std::vector<std::string> command{"train", dataset, "-o", run, "-m", small_model(), "--epochs", "2"};
  ProgramResult result = run_program(command);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "recipe: batch size 4, 10 steps an epoch of 40 images")) << result.err;
  EXPECT_TRUE(contains(result.err, "\ntraining images of each class: blue: 13, green: 13, red: 14\n") ||
              contains(result.err, "\ntraining images of each class: blue: 14, green: 13, red: 13\n") ||
              contains(result.err, "\ntraining images of each class: blue: 13, green: 14, red: 13\n"))
      << result.err;
  EXPECT_TRUE(contains(result.err, "next: vitrail classify -m " + (run / "model").string())) << result.err;
  EXPECT_TRUE(contains(result.err, "% of 20 images (95 % interval ")) << result.err;
  const auto json = json_lines(result.out)[0];
  EXPECT_EQ(json["epochs"], 2);
  EXPECT_EQ(json["retrained"], (nlohmann::json{{"epochs", json["best_epoch"]}, {"images", 60}}));
  EXPECT_TRUE(contains(result.err, " images; the figures above are of the training without the held-out ones\n"));

  // The recipe that was chosen can be used itself, and gives the same.
  const fs::path second = scratch_folder() / "second";
  result = run_program({"train", run / "recipe.json", "-o", second});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(read_text(run / "model/model.safetensors"), read_text(second / "model/model.safetensors"));

  for (const char* folder : {"model", "last"}) {
    EXPECT_EQ(run_program({"classify", "-m", run / folder, dataset / "test/red/00.png"}).status, 0) << folder;
  }
}

// Nothing is held out: the accuracy is that of cross-validation, with its interval and number of images.
TEST(Train, AProbeTellsItsCrossValidatedAccuracy) {
  const fs::path dataset = make_images(), run = scratch_folder() / "run";
  const std::string model = model_fixture("timm_token").parent_path().string();
  const ProgramResult result = run_program({"train", dataset, "-o", run, "-m", model, "--preset", "probe"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = json_lines(result.out).at(0);
  const double top1 = json["cross_validated_top1"];
  EXPECT_TRUE(contains(result.err, "\ntraining images of each class: blue: 20, green: 20, red: 20\n")) << result.err;
  EXPECT_TRUE(contains(result.err, "\ncross-validated top-1 " + data::accuracy_text(top1, 60))) << result.err;
  for (const char* untrue : {"best weights", "held-out"}) EXPECT_FALSE(contains(result.err, untrue)) << result.err;
  EXPECT_TRUE(json["held_out_top1"].is_null() && json["best_epoch"].is_null()) << json;
  EXPECT_EQ(json["cross_validated_images"], 60);
  for (const auto& [name, images] : {std::pair{"cross_validated_top1", 60}, {"test_top1", 12}, {"test_top5", 12}}) {
    const data::Interval interval = data::wilson_interval(json[name], images);
    EXPECT_EQ(json[std::string(name) + "_interval"], (nlohmann::json{interval.low, interval.high})) << name;
  }
}

// A head for pixels has epochs, with frozen features too.
TEST(Train, AProbeOfLabelMapsIsTrainedInEpochs) {
  const fs::path maps = train::make_maps(), run = scratch_folder() / "run";
  const auto probe = [&](const char* option, const char* value) {
    return run_program({"train", maps, "-o", run, "-m", small_model(), "--preset", "probe", option, value});
  };
  const ProgramResult result = probe("--epochs", "3");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "recipe: a linear head with batch normalisation on frozen features; "))
      << result.err;
  EXPECT_TRUE(contains(result.err, "recipe: 3 epochs")) << result.err;
  EXPECT_EQ(json_lines(result.out).at(0)["epochs"], 3);
  EXPECT_TRUE(contains(probe("--folds", "2").err,
                       "--folds: expected class folders or a list of labels, got a dataset of label maps"));
}

TEST(Train, ATimeChoosesTheEpochsOfLabelMaps) {
  const fs::path maps = train::make_maps(), run = scratch_folder() / "run";
  const ProgramResult result =
      run_program({"train", maps, "-o", run, "-m", small_model(), "--threads", "1", "--time", "3s"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(json_lines(result.out).at(0)["held_out_images"], 4);
  EXPECT_NE(nlohmann::json::parse(read_text(run / "recipe.json"))["epochs"], 48) << "that of 12 images without a time";
}

// The line of an epoch has the numbers of its last row in metrics.csv, those of the weights and of their average apart.
TEST(Train, TheLineOfAnEpochHasTheNumbersOfItsValidation) {
  const fs::path run = scratch_folder() / "run";
  const ProgramResult result = run_program({"train", recipe_file(make_images()), "-o", run, "--threads", "1"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto rows = metric_rows(run);
  int epochs = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].at("event") != "val") continue;
    ++epochs;
    const auto& average = rows.at(i + 1);
    EXPECT_EQ(average.at("event"), "val_ema");
    const auto accuracy = [](const std::map<std::string, std::string>& row) {
      const double fraction = std::stod(row.at("top1"));
      const data::Interval interval = data::wilson_interval(fraction, 12);
      char text[64];
      std::snprintf(text, sizeof text, "%5.2f %% (%.1f to %.1f of 12)", 100 * fraction, 100 * interval.low,
                    100 * interval.high);
      return std::string(text);
    };
    char loss[32];
    std::snprintf(loss, sizeof loss, "%.4f", std::stod(rows[i].at("loss")));
    EXPECT_TRUE(contains(result.err, std::string("  validation: loss ") + loss + "  top-1 " + accuracy(rows[i]) +
                                         "  EMA " + accuracy(average) + "  "))
        << result.err;
  }
  EXPECT_EQ(epochs, 3);
}

// It is always 100 %.
TEST(Train, TheTop5OfThreeClassesIsNotTold) {
  const fs::path dataset = make_images(), run = scratch_folder() / "run";
  const std::string model = model_fixture("timm_token").parent_path().string();
  ASSERT_EQ(run_program({"train", dataset, "-o", run, "-m", model, "--preset", "probe", "--quiet"}).status, 0);
  const ProgramResult result = run_program({"eval", "-m", run, dataset, "--format", "table"});
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string report = read_text(run / "report.html");
  EXPECT_TRUE(contains(result.out, "top-1 ")) << result.out;
  EXPECT_TRUE(contains(report, "top-1 on the test images"));
  for (const std::string& text : {result.out, report}) EXPECT_FALSE(contains(text, "top-5")) << text;
}

TEST(Train, OptionsOfADatasetAreRefusedForARecipe) {
  const std::string recipe = recipe_file(make_images()), run = (scratch_folder() / "run").string();
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--preset", "scratch"}, {"--epochs", "2"}, {"--time", "10s"}}) {
    std::vector<std::string> command{"train", recipe, "-o", run};
    command.insert(command.end(), options.begin(), options.end());
    const ProgramResult result = run_program(command);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_TRUE(contains(result.err, options[0] + ": belongs to a dataset")) << result.err;
  }
  const ProgramResult result = run_program({"train", scratch_folder(), "-o", run, "--time", "10s", "--epochs", "2"});
  EXPECT_EQ(result.status, 2) << result.err;
}

TEST(Train, DataAndModelOfTheCommandLineReplaceTheRecipes) {
  const fs::path dataset = make_images(), folder = scratch_folder();
  train::write_file(folder / "probe.json", R"({"objective": "probe", "model": {"init": "nothing"},
      "data": {"train": "nothing", "holdout": 1000}})");
  const std::string model = model_fixture("timm_token").parent_path().string(), run = (folder / "run").string();
  const ProgramResult result =
      run_program({"train", (folder / "probe.json").string(), "--data", dataset.string(), "-m", model, "-o", run});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_GT(json_lines(result.out).at(0)["test_top1"], 0.8);
  const ProgramResult classified =
      run_program({"classify", "-m", run, (dataset / "test/red/00.png").string(), "--format", "json"});
  ASSERT_EQ(classified.status, 0) << classified.err;
  EXPECT_EQ(json_lines(classified.out).at(0)["predictions"].size(), 3u);
  const std::string images = (dataset / "test").string();
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"inspect", run},
           {"eval", "-m", run, dataset.string()},
           {"knn", "-m", run, dataset.string(), dataset.string()},
           {"embed", "-m", run, images, "-o", (folder / "features.npy").string()},
           {"attention", "-m", run, (dataset / "test/red/00.png").string(), "-o", (folder / "attention.png").string()},
           {"bench", run, "--batch", "1", "--seconds", "0.01"},
           {"convert", run, "-o", (folder / "converted").string()}}) {
    const ProgramResult opened = run_program(arguments);
    EXPECT_EQ(opened.status, 0) << arguments[0] << ": " << opened.err;
  }
}

TEST(Train, ARefusedRunLeavesNoFolder) {
  const fs::path folder = scratch_folder();
  const ProgramResult result =
      run_program({"train", recipe_file(make_images()), "--data", "/nowhere/mnist", "-o", (folder / "run").string()});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "scripts/get-data mnist /nowhere/mnist")) << result.err;
  EXPECT_FALSE(fs::exists(folder / "run"));
}

TEST(Train, ErrorsNameThePathOfTheInvalidField) {
  const std::string recipe = recipe_file(make_images()), run = (scratch_folder() / "run").string();
  ProgramResult result = run_program({"train", recipe, "-o", run, "--set", "optimizer.rate=1"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "optimizer.rate: expected one of the fields name lr")) << result.err;
  result = run_program({"train", recipe, "-o", run, "--set", "optimizer.weigth_decay=1"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "got an unknown field; did you mean weight_decay?")) << result.err;
  result = run_program({"train", recipe, "-o", run, "--set", "data.train=/nowhere"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "/nowhere")) << result.err;
  result = run_program({"train", recipe});
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(contains(result.err, "--output")) << result.err;
}

}  // namespace
}  // namespace vitrail::testing
