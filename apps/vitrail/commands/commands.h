// SPDX-License-Identifier: Apache-2.0
#pragma once
// Registration of the subcommands.  Parsing the command line stores the chosen subcommand's action in `run`.
#include "apps/vitrail/shell/common.h"

namespace vitrail::app {

// The commands, in the order of the help text: add_NAME() is defined in NAME.cpp.  That of tasks has those of all tasks
// without a command of their own.
#define VITRAIL_COMMANDS(COMMAND) \
  COMMAND(classify)               \
  COMMAND(zeroshot)               \
  COMMAND(embed)                  \
  COMMAND(attention)              \
  COMMAND(pca)                    \
  COMMAND(explain)                \
  COMMAND(segment)                \
  COMMAND(anomaly)                \
  COMMAND(tasks)                  \
  COMMAND(eval)                   \
  COMMAND(inspect)                \
  COMMAND(bench)                  \
  COMMAND(convert)                \
  COMMAND(train)                  \
  COMMAND(pretrain)               \
  COMMAND(serve)                  \
  COMMAND(knn)                    \
  COMMAND(index)                  \
  COMMAND(search)                 \
  COMMAND(duplicates)             \
  COMMAND(audit)                  \
  COMMAND(models)                 \
  COMMAND(pull)                   \
  COMMAND(cache)                  \
  COMMAND(completion)             \
  COMMAND(info)

#define VITRAIL_DECLARE_COMMAND(NAME) void add_##NAME(CLI::App& program, const GlobalOptions& global, Run& run);
VITRAIL_COMMANDS(VITRAIL_DECLARE_COMMAND)
#undef VITRAIL_DECLARE_COMMAND

}  // namespace vitrail::app
