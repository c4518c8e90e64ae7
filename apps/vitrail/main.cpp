// SPDX-License-Identifier: Apache-2.0
// vitrail: the command line.  Each subcommand is a file of its own; docs/cli.md is what scripts may rely on.
#include <fmt/core.h>

#include <new>

#include "apps/vitrail/commands.h"
#include "apps/vitrail/output.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"

namespace {

using namespace vitrail;

constexpr int kFailed = 1, kWrongUsage = 2;

int run_guarded(const app::Run& run) {
  try {
    return run();
  } catch (const CLI::Error& error) {  // an option whose value makes no sense only together with others
    app::print_error(error.what());
    return kWrongUsage;
  } catch (const Error& error) {
    app::print_error(error.what());
  } catch (const std::bad_alloc&) {
    app::print_error("out of memory");
  }
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Vision Transformers: classify, embed, look inside, measure, convert.", "vitrail");
  program.set_version_flag("--version", "vitrail " VITRAIL_VERSION);
  program.require_subcommand(1);
  program.fallthrough();
  program.footer(
      "Example: vitrail classify -m deit_tiny_patch16_224.fb_in1k photo.jpg\nHelp on one: vitrail classify --help");

  app::GlobalOptions global;
  program.add_option("--threads", global.threads, "Threads (default: all the cores it may run on)")
      ->check(CLI::PositiveNumber);
  program
      .add_option("--precision", global.precision,
                  "Of the matrix products: fp32, half, int8 (default: the model's own, else fp32)")
      ->check(CLI::IsMember({"fp32", "half", "bf16", "int8"}));
  program.add_flag("--quiet", global.quiet, "No progress and no warnings");

  app::Run run;
  app::add_classify(program, global, run);
  app::add_embed(program, global, run);
  app::add_attention(program, global, run);
  app::add_eval(program, global, run);
  app::add_inspect(program, global, run);
  app::add_bench(program, global, run);
  app::add_convert(program, global, run);
  app::add_train(program, global, run);
  app::add_knn(program, global, run);
  app::add_models(program, global, run);

  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);  // --help, --version
    program.exit(error);
    return kWrongUsage;
  }
  set_warning_callback([&global](const std::string& message) {
    if (!global.quiet) app::print_warning(message);
  });
  const int status = run_guarded(run);
  if (std::fflush(stdout) != 0) {
    app::print_error("standard output: write failed");
    return kFailed;
  }
  return status;
}
