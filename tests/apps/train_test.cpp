// SPDX-License-Identifier: Apache-2.0
// vitrail train as a user runs it, kills it and runs it again.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "tests/apps/cli_fixture.h"
#include "tests/train/training_fixture.h"
#include "vitrail/train/checkpoint.h"

namespace vitrail::testing {
namespace fs = std::filesystem;
namespace {

using train::deterministic_columns;
using train::make_images;
using train::read_text;

std::string recipe_file(const fs::path& pictures) {
  const fs::path file = scratch_folder() / "recipe.json";
  train::write_file(file, train::tiny_recipe(pictures));
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

// How many rows a file has; 0 where there is none.
size_t rows_of(const fs::path& csv) { return fs::exists(csv) ? lines_of(read_text(csv)).size() : 0; }

// Starts the program and sends it a signal when metrics.csv has so many rows, and `later` more; how it ended (128 + n:
// by signal n).
int run_and_signal(std::vector<std::string> command, const fs::path& run, size_t rows, std::chrono::microseconds later,
                   int signal) {
  const std::string name = program().string();
  command.insert(command.begin(), name);
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::fflush(stdout);  // or the child would write what waits there once more
  const pid_t child = ::fork();
  if (child == 0) {
    const bool quiet = std::freopen("/dev/null", "w", stderr) && std::freopen("/dev/null", "w", stdout);
    if (quiet) ::execv(name.c_str(), argv.data());
    ::_exit(127);
  }
  int status = 0;
  while (rows_of(run / "metrics.csv") < rows && ::waitpid(child, &status, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(later);
  if (::kill(child, signal) == 0) ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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

TEST(Train, KilledAtAnyMomentAndResumedEndsAsIfNothingHadHappened) {
  const std::string recipe = recipe_file(make_images());
  const fs::path whole = scratch_folder() / "whole", broken = scratch_folder() / "broken";
  const Ended ended = run_program(train_command(recipe, whole));
  ASSERT_EQ(ended.status, 0) << ended.err;
  const size_t rows = rows_of(whole / "metrics.csv");  // a step or a validation each
  std::srand(static_cast<unsigned>(::getpid()));
  const int rounds = 6;
  for (size_t round = 0; round < rounds; ++round) {
    const size_t target = 1 + (round * (rows - 10) + static_cast<size_t>(std::rand()) % (rows - 10)) / rounds;
    const std::chrono::microseconds later(std::rand() % 20000);
    EXPECT_EQ(run_and_signal(train_command(recipe, broken, true), broken, target, later, SIGKILL), 128 + SIGKILL);
  }
  const Ended resumed = run_program(train_command(recipe, broken, true));
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  expect_same_checkpoints(whole, broken);
  EXPECT_EQ(deterministic_columns(whole / "metrics.csv"), deterministic_columns(broken / "metrics.csv"));
  EXPECT_EQ(read_text(whole / "model/model.safetensors"), read_text(broken / "model/model.safetensors"));
  for (const auto& entry : fs::recursive_directory_iterator(broken))
    EXPECT_FALSE(contains(entry.path().filename().string(), ".tmp")) << entry.path();
}

TEST(Train, ASignalFinishesTheStepAndSaves) {
  const std::string recipe = recipe_file(make_images(200));
  for (const int signal : {SIGINT, SIGTERM}) {
    const fs::path run = scratch_folder() / "run";
    std::vector<std::string> command = train_command(recipe, run);
    command.insert(command.end(), {"--set", "epochs=1000", "--set", "checkpoint.every_steps=0"});
    EXPECT_EQ(run_and_signal(command, run, 4, std::chrono::microseconds(500), signal), 1);
    EXPECT_GT(train::load_checkpoint(run / "checkpoints/last.safetensors").position.step, 0);
  }
}

TEST(Train, PrintsItsFiguresAndItsModelClassifies) {
  const fs::path pictures = make_images(), run = scratch_folder() / "run";
  const Ended ended = run_program(train_command(recipe_file(pictures), run));
  ASSERT_EQ(ended.status, 0) << ended.err;
  const auto figures = json_lines(ended.out);
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0]["epochs"], 12);
  EXPECT_TRUE(contains(ended.err, "epoch  12")) << ended.err;
  EXPECT_FALSE(contains(ended.err, "\r")) << "a progress bar without a terminal";

  const Ended scored = run_program({"eval", "-m", run / "model", pictures});
  ASSERT_EQ(scored.status, 0) << scored.err;
  EXPECT_EQ(json_lines(scored.out)[0]["top1"], figures[0]["test_top1"]);
  const Ended neighbours = run_program({"knn", "-m", run / "model", pictures, pictures, "--k", "5"});
  ASSERT_EQ(neighbours.status, 0) << neighbours.err;
  const auto votes = json_lines(neighbours.out)[0];
  EXPECT_EQ(votes["images"], 12);
  EXPECT_EQ(votes["training_images"], 60);
}

TEST(Train, BadRecipesAndSettingsFailWithTheirPath) {
  const std::string recipe = recipe_file(make_images()), run = (scratch_folder() / "run").string();
  Ended ended = run_program({"train", recipe, "-o", run, "--set", "optimizer.rate=1"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.err, "optimizer.rate: expected one of the fields name lr")) << ended.err;
  ended = run_program({"train", recipe, "-o", run, "--set", "data.train=/nowhere"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.err, "/nowhere")) << ended.err;
  ended = run_program({"train", recipe});
  EXPECT_EQ(ended.status, 2);
  EXPECT_TRUE(contains(ended.err, "--output")) << ended.err;
}

}  // namespace
}  // namespace vitrail::testing
