// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the commands that train have in common: options, signals, progress, processes.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "apps/vitrail/shell/common.h"
#include "vitrail/dist/communicator.h"
#include "vitrail/train/recipe/default_recipe.h"
#include "vitrail/train/trainer.h"

namespace vitrail::app {

using Processes = std::shared_ptr<dist::Communicator>;
using Print = std::function<void(const std::string&)>;  // a line for people

// The options of a run that all commands that train have.
struct RunOptions {
  std::string folder;
  std::optional<double> seconds;  // --time
  bool resume = false, allow_changes = false, force = false;
};
void add_run_folder(CLI::App& command, RunOptions& options);
void add_time(CLI::App& command, RunOptions& options);  // after --epochs, which it excludes
void add_resume(CLI::App& command, RunOptions& options);

// The processes that mpirun started on one machine share its cores.
int threads_for(const GlobalOptions& global);

// The recipe of the run that is resumed, or of the first fold, whose epochs --time must not choose again; none for a
// new run.
std::optional<train::Recipe> recipe_of_run(const RunOptions& options);

// The epochs that take about `seconds`, from the time of some training steps on this machine.
int64_t epochs_within(double seconds, const train::DefaultRecipe& chosen, int threads);

// Prints the reasons of a chosen recipe, applies `settings` to it, and prints what they change.  where: the dataset.
train::Recipe explained_recipe(const train::DefaultRecipe& chosen, const std::string& where,
                               const std::vector<std::string>& settings, const Print& print);

// The part of --time that is left for each of `trainings` trainings since `start`; at least a millisecond, because 0 is
// no limit.
double time_left(const RunOptions& options, double trainings, std::chrono::steady_clock::time_point start);

// Runs `train` with progress for people and Ctrl-C, which saves and stops.  Empty if it was stopped: the exit status is
// then 1.  Also empty on all processes but the first, whose status it sets in `status`.
using Training = std::function<train::TrainingResult(const train::TrainerOptions&, const train::TrainerCallbacks&)>;
std::optional<train::TrainingResult> run_training(const RunOptions& options, double seconds,
                                                  const GlobalOptions& global, const Processes& processes,
                                                  const Training& train, int& status);

// Prints the scores before training and of the saved model, if the start was measured, and whether it is the saved
// model.
void print_change(const train::TrainingResult& result, const Print& print);

// Prints where the model and the report are, and the next command.
void print_files(const RunOptions& options, const train::TrainingResult& result, const Print& print);

// {"run": FOLDER, …} as train::result_json()
nlohmann::ordered_json run_json(const RunOptions& options, const train::TrainingResult& result);

// Runs a command in the processes that mpirun started.  With several, an error names its process.
int in_processes(const std::function<int(const Processes&)>& command);

}  // namespace vitrail::app
