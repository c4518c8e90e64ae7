// SPDX-License-Identifier: Apache-2.0
// Each subcommand has its own file.  docs/cli.md documents the interface that scripts rely on.
#include "apps/vitrail/program.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <sstream>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/progress.h"
#include "apps/vitrail/shell/build_info.h"
#include "apps/vitrail/shell/field_options.h"
#include "apps/vitrail/shell/process_setup.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "apps/vitrail/shell/version_text.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_guard.h"
#include "vitrail/base/parallel.h"
#include "vitrail/hub/hub.h"
#include "vitrail/image/decode_memory.h"

namespace vitrail::app {
namespace {

constexpr int kFailure = 1, kUsageError = 2;

// Runs a function and returns its status.  Prints any exception as an error.
template <class Function>
int run_guarded(Function run) {
  try {
    return run();
  } catch (const CLI::Error& error) {  // options that are invalid only in combination
    print_error(error.what());
    return kUsageError;
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::exception& error) {
    print_error(error.what());
  }
  return kFailure;
}

// Prints the help text or the version on standard output, or a usage error on standard error.
int finish_parse(const CLI::App& program, const std::vector<std::string>& arguments, const CLI::ParseError& error) {
  if (error.get_exit_code() != 0) {
    print_error(usage_error(program, arguments, error));
    print_note("Run vitrail --help, or vitrail COMMAND --help, for more information.");
    return kUsageError;
  }
  std::ostringstream out, unused;
  program.exit(error, out, unused);
  write_output(out.str());
  return 0;
}

// A precision without effect would be a promise that is not kept.  VITRAIL_PRECISION is for the commands that use it.
void require_precision_is_used(const CLI::App& program, const std::vector<std::string>& arguments) {
  static const std::map<std::string, std::string> kReasons{{"train", "training has its own: --set precision=bf16"},
                                                           {"convert", "the converted model has that of --dtype"},
                                                           {"inspect", "traces are computed in fp32"},
                                                           {"models", "no model runs"},
                                                           {"index", "no model runs"},
                                                           {"pull", "no model runs"},
                                                           {"cache", "no model runs"},
                                                           {"completion", "no model runs"},
                                                           {"info", "no model runs"}};
  for (const CLI::App* command : program.get_subcommands()) {
    const auto reason = kReasons.find(command->get_name());
    const bool given = std::ranges::any_of(arguments, [](const auto& a) { return a.starts_with("--precision"); });
    if (given && reason != kReasons.end())
      throw CLI::ValidationError("--precision", "has no effect on " + reason->first + ": " + reason->second);
  }
}

// Shows the progress of downloads, which -m starts too.
void show_transfers(bool quiet) {
  const char* const disabled = std::getenv("HF_HUB_DISABLE_PROGRESS_BARS");
  const bool hidden = quiet || (disabled && std::string_view("1") == disabled);
  auto progress = std::make_shared<ByteProgress>("", hidden);
  hub::set_transfer_callback([progress](const hub::Transfer& transfer) {
    progress->set_what(transfer.file);
    progress->update(transfer.done, transfer.total);
  });
}

// A command that is the first argument is added alone, which takes a part of the time of all.  `completion` lists all.
// "tasks" stands for the commands of several tasks, and is the name of none.
void add_commands(CLI::App& program, std::string_view first, const GlobalOptions& global, Run& run) {
#define VITRAIL_NAME_OF_COMMAND(NAME) #NAME,
  constexpr std::string_view kNames[] = {VITRAIL_COMMANDS(VITRAIL_NAME_OF_COMMAND)};
#undef VITRAIL_NAME_OF_COMMAND
  const bool is_name = first != "tasks" && std::ranges::find(kNames, first) != std::end(kNames);
  const bool adds_all = !is_name || first == "completion";
#define VITRAIL_ADD_COMMAND(NAME) \
  if (adds_all || first == #NAME) add_##NAME(program, global, run);
  VITRAIL_COMMANDS(VITRAIL_ADD_COMMAND)
#undef VITRAIL_ADD_COMMAND
}

int run_command(int argc, char** argv) {
  CLI::App program("Vision Transformers: inference, features, attention maps, evaluation, conversion and training.",
                   "vitrail");
  program.set_version_flag("--version", version_text);
  program.add_flag_callback(
      "--license", [] { throw CLI::CallForVersion(kNotice, 0); },
      "Display the licence, and those of the libraries, and exit");
  program.require_subcommand(1);
  program.fallthrough();
  program.footer(
      "Example: vitrail classify -m timm/deit_tiny_patch16_224.fb_in1k photo.jpg\nHelp on a command: vitrail classify "
      "--help");

  GlobalOptions global;
  global.command_line = command_line({argv + 1, argv + argc});
  add_field_options(
      program,
      [&global](Fields& f) {
        f.integer({"threads", "Number of threads (default: all available cores)"}, global.threads, 1, 1024);
        f.choice(
            {"precision",
             "Compute precision: fp32, half (16-bit: bf16 with AMX, int16 with AVX-512 VNNI, else fp32 with weights "
             "rounded to bf16) or int8 (default: the model's, else fp32)"},
            global.precision, {"fp32", "half", "bf16", "int8"});
        f.integer({"decode_memory",
                   "Memory for images that are decoded at a time, in MiB (default: 1024, or half of the memory limit "
                   "of the machine or container if that is less)"},
                  global.decode_memory, 1, 1 << 20);
        f.integer({"max_memory",
                   "Memory that the program may allocate, in MiB; what needs more is an error (default: no limit)"},
                  global.max_memory, 32, 1 << 30);
        f.boolean({"quiet", "Suppress progress and warnings"}, global.quiet);
      },
      {},
      [](CLI::Option& option) {
        std::string variable = "VITRAIL_" + option.get_single_name();
        std::ranges::transform(variable, variable.begin(), [](char c) { return c == '-' ? '_' : std::toupper(c); });
        option.envname(variable)->default_str("");
      });

  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "help") {  // as "vitrail help train"
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }

  Run run;
  add_commands(program, arguments.empty() ? "" : arguments[0], global, run);

  if (argc == 1) {
    write_output(program.help());
    return 0;
  }
  try {
    program.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // the last argument first
    refuse_empty_arguments(program);
  } catch (const CLI::ParseError& error) {
    return finish_parse(program, arguments, error);
  }
  require_precision_is_used(program, arguments);
  if (global.max_memory > 0) limit_memory(global.max_memory << 20);
  if (global.decode_memory > 0) image::set_decode_memory(global.decode_memory << 20);
  std::optional<ThreadCount> threads;  // also for what runs before a session, such as packing weights
  if (global.threads > 0) threads.emplace(global.threads);
  set_warning_callback([quiet = global.quiet](const std::string& message) {
    if (!quiet) print_warning(message);
  });
  show_transfers(global.quiet);
  if (global.threads > available_threads()) {
    warn(str("--threads ", global.threads, ": this process may use ", available_threads(),
             " cores, and more threads are not faster"));
  }
  return run();
}

}  // namespace

int run_program(int argc, char** argv) {
  open_closed_standard_streams();
  ignore_file_size_signal();
  remove_temporary_files_on_signals();
  guard_mapped_files();
  const int status = run_with_enough_stack([&] { return run_guarded([&] { return run_command(argc, argv); }); });
  if (std::ferror(stdout)) return kFailure;  // reported when it occurred
  const int flushed = run_guarded([] {
    flush_output();
    return 0;
  });
  return status == 0 ? flushed : status;
}

}  // namespace vitrail::app
