// SPDX-License-Identifier: Apache-2.0
#include <link.h>

#include <algorithm>
#include <filesystem>

#include "apps/vitrail/build_info.h"
#include "apps/vitrail/commands.h"
#include "apps/vitrail/output.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/isa/isa.h"

namespace vitrail::app {
namespace {

extern "C" int add_library_name(dl_phdr_info* info, size_t, void* names) {
  std::error_code unknown;
  const std::filesystem::path file = std::filesystem::canonical(info->dlpi_name, unknown);
  if (!file.empty()) static_cast<std::vector<std::string>*>(names)->push_back(file.filename().string());
  return 0;
}

// The shared libraries of this process.  Links are resolved, because the names of the files have the versions.
std::vector<std::string> loaded_libraries() {
  std::vector<std::string> names;
  ::dl_iterate_phdr(add_library_name, &names);
  std::sort(names.begin(), names.end());
  return names;
}

int print_info(const GlobalOptions& global) {
  const auto line = [](const char* name, const std::string& value) { print_output("{:16s}{}\n", name, value); };
  line("version", VITRAIL_VERSION);
  line("commit", kCommit);
  line("compiler", VITRAIL_COMPILER);
  std::string isas;
  for (const kernels::Isa isa : kernels::available_isas())
    isas += (isas.empty() ? "" : ", ") + std::string(kernels::name_of(isa));
  line("instruction set", fmt::format("{} (of {})", kernels::name_of(kernels::active_isa()), isas));
  for (const auto precision : {kernels::Precision::fp32, kernels::Precision::half, kernels::Precision::int8}) {
    line(kernels::name_of(precision), kernels::arithmetic_of(precision));
  }
  const int available = available_threads();
  line("threads", fmt::format("{} (of {} available)", global.threads > 0 ? global.threads : available, available));
  std::string libraries;
  for (const std::string& name : loaded_libraries())
    libraries += (libraries.empty() ? "" : "\n                ") + name;
  line("libraries", libraries);
  return 0;
}

}  // namespace

void add_info(CLI::App& program, const GlobalOptions& global, Run& run) {
  CLI::App* command = program.add_subcommand("info", "Show the version, the build and what this machine runs");
  command->footer("Example: vitrail info");
  command->callback([&global, &run] { run = [&global] { return print_info(global); }; });
}

}  // namespace vitrail::app
