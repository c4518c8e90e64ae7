// SPDX-License-Identifier: Apache-2.0
#pragma once
// Registration of the subcommands.  Parsing the command line stores the chosen subcommand's action in `run`.
#include "apps/vitrail/common.h"

namespace vitrail::app {

void add_classify(CLI::App& program, const GlobalOptions& global, Run& run);
void add_embed(CLI::App& program, const GlobalOptions& global, Run& run);
void add_attention(CLI::App& program, const GlobalOptions& global, Run& run);
void add_eval(CLI::App& program, const GlobalOptions& global, Run& run);
void add_inspect(CLI::App& program, const GlobalOptions& global, Run& run);
void add_bench(CLI::App& program, const GlobalOptions& global, Run& run);
void add_convert(CLI::App& program, const GlobalOptions& global, Run& run);
void add_train(CLI::App& program, const GlobalOptions& global, Run& run);
void add_knn(CLI::App& program, const GlobalOptions& global, Run& run);
void add_models(CLI::App& program, const GlobalOptions& global, Run& run);

}  // namespace vitrail::app
