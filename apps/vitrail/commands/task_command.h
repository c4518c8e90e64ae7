// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command of a task: its options, JSON lines, arrays and rendered images.
#include "apps/vitrail/shell/common.h"
#include "vitrail/tasks/task.h"

namespace vitrail::app {

// The command runs unless one of its own subcommands is given.
CLI::App* add_task_command(CLI::App& program, const tasks::Task& task, const GlobalOptions& global, Run& run);

}  // namespace vitrail::app
