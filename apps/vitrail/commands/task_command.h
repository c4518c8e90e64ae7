// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command of a task: its options, JSON lines, arrays and rendered images.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/vitrail/commands/described_options.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/shell/common.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::app {

// The options of a task, of all its rows.
struct TaskOptions {
  std::string task;  // its name
  ModelOptions model = {};
  StreamOptions images = {};
  std::shared_ptr<DescribedOptions> described = std::make_shared<DescribedOptions>();
  std::map<std::string, std::string> input_files = {};  // paths, by the options of the rows' input files
  std::string arrays = {}, render = {};
  // kind → folder, or the file of a joint kind; empty if it was not given
  std::map<std::string, std::string> files = {};
  std::string format = "json";  // the other one is "text"
  bool force = false, track = false;
};

// Adds the options that rows describe, and --arrays, --render, --force, --batch and --exif.  A command has some of them
// already, whose values the caller passes on.  The options outlive the command.
void add_task_options(CLI::App& command, const std::shared_ptr<TaskOptions>& options);

// Creates the folders of results and opens the model.  Throws Error for one that no row fits.
std::unique_ptr<tasks::LoadedModel> open_task_model(const TaskOptions& options, const GlobalOptions& global);

// Runs the row that fits the model on the images.
int run_task(TaskOptions& options, std::unique_ptr<tasks::LoadedModel> model, const GlobalOptions& global);

// The command runs unless one of its own subcommands is given.
CLI::App* add_task_command(CLI::App& program, const std::string& task, const GlobalOptions& global, Run& run);

}  // namespace vitrail::app
