// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options that the rows of a task describe, on the command line.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/vitrail/shell/common.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::app {

std::vector<const tasks::Task*> rows_named(const std::string& task);

// What was given of them.
struct DescribedOptions {
  tasks::RequestOptions request = {};
  // The texts of Task::name_lists, by their options: names or the path of a file.
  std::map<std::string, std::vector<std::string>> name_lists = {};
};

// Adds the options that a row describes and the command does not have.  A text that is not as described is an error of
// usage.  The options outlive the command.
void add_described_options(CLI::App& command, const tasks::Task& row, const std::shared_ptr<DescribedOptions>& options);

// Reads the files of names, once, into the request.
void read_name_lists(DescribedOptions& options);

// Throws CLI::ValidationError for an option of another row of the task.  A row without a description reads its request
// itself: nothing is refused.
void refuse_options_of_other_rows(const tasks::Task& row, DescribedOptions& options, const std::string& family);

}  // namespace vitrail::app
