// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/shell/build_info.h"
#include "apps/vitrail/shell/version_text.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/text.h"
#include "vitrail/kernels/gemm/linear.h"

namespace vitrail::app {
namespace {

int print_info(const GlobalOptions& global) {
  const auto line = [](const char* name, const std::string& value) { print_output("{:16s}{}\n", name, value); };
  const std::string instruction_set = instruction_set_text();  // its error comes before any output
  line("version", VITRAIL_VERSION);
  line("commit", kCommit);
  line("compiler", VITRAIL_COMPILER);
  line("instruction set", instruction_set);
  for (const auto precision : {kernels::Precision::fp32, kernels::Precision::half, kernels::Precision::int8}) {
    line(kernels::name_of(precision), kernels::arithmetic_of(precision));
  }
  const int available = available_threads();
  line("threads", fmt::format("{} (of {} available)", global.threads > 0 ? global.threads : available, available));
  line("libraries", join(loaded_libraries(), "\n                "));
  return 0;
}

}  // namespace

void add_info(CLI::App& program, const GlobalOptions& global, Run& run) {
  CLI::App* command = program.add_subcommand("info", "Show the version, the build and what this machine runs");
  command->footer("Example: vitrail info");
  command->callback([&global, &run] { run = [&global] { return print_info(global); }; });
}

}  // namespace vitrail::app
