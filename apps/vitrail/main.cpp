// SPDX-License-Identifier: Apache-2.0
// The vitrail program.  Each subcommand has its own file.  docs/cli.md documents the interface that scripts rely on.
#include <fmt/core.h>

#include <new>

#include "apps/vitrail/commands.h"
#include "apps/vitrail/output.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"

namespace {

using namespace vitrail;

constexpr int kFailure = 1, kUsageError = 2;

int run_guarded(const app::Run& run) {
  try {
    return run();
  } catch (const CLI::Error& error) {  // options that are invalid only in combination
    app::print_error(error.what());
    return kUsageError;
  } catch (const Error& error) {
    app::print_error(error.what());
  } catch (const std::bad_alloc&) {
    app::print_error("out of memory");
  }
  return kFailure;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Vision Transformers: inference, features, attention maps, evaluation, conversion and training.",
                   "vitrail");
  program.set_version_flag("--version", "vitrail " VITRAIL_VERSION);
  program.require_subcommand(1);
  program.fallthrough();
  program.footer(
      "Example: vitrail classify -m deit_tiny_patch16_224.fb_in1k photo.jpg\nHelp on a command: vitrail classify "
      "--help");

  app::GlobalOptions global;
  program.add_option("--threads", global.threads, "Number of threads (default: all available cores)")
      ->check(CLI::PositiveNumber);
  program
      .add_option("--precision", global.precision,
                  "Compute precision: fp32, half (16-bit: int16 with AVX-512 VNNI, else fp32 with weights rounded to "
                  "bf16) or int8 (default: the model's, else fp32)")
      ->check(CLI::IsMember({"fp32", "half", "bf16", "int8"}));
  program.add_flag("--quiet", global.quiet, "Suppress progress and warnings");

  app::Run run;
#define VITRAIL_ADD_COMMAND(NAME) app::add_##NAME(program, global, run);
  VITRAIL_COMMANDS(VITRAIL_ADD_COMMAND)
#undef VITRAIL_ADD_COMMAND

  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);  // --help, --version
    program.exit(error);
    return kUsageError;
  }
  set_warning_callback([&global](const std::string& message) {
    if (!global.quiet) app::print_warning(message);
  });
  const int status = run_guarded(run);
  if (std::fflush(stdout) != 0) {
    app::print_error("standard output: write failed");
    return kFailure;
  }
  return status;
}
