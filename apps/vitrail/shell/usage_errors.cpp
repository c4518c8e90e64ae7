// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/shell/usage_errors.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"

namespace vitrail::app {
namespace {

std::vector<std::string> command_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string unknown_command(const CLI::App& program) {
  for (const std::string& argument : program.remaining()) {  // what is no option with its value
    if (argument.starts_with('-')) continue;
    return "unknown command '" + argument + "'" + did_you_mean(argument, command_names(program));
  }
  return "";
}

// A file whose name begins with "-" is taken for options.
std::string file_as_option(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    std::error_code error;
    if (argument == "--") break;
    if (argument.size() > 1 && argument.starts_with('-') && std::filesystem::exists(argument, error))
      return "expected options, got the file '" + argument + "'; write ./" + argument;
  }
  return "";
}

std::string name_in(const std::string& argument) { return argument.substr(0, argument.find('=')); }

bool has_option(const CLI::App& command, const std::string& name) {
  return name.starts_with('-') && command.get_option_no_throw(name) != nullptr;
}

// A user may write "-m MODEL classify".
std::string option_before_command(const CLI::App& program, const std::vector<std::string>& arguments) {
  for (const CLI::App* command : program.get_subcommands()) {
    for (const std::string& argument : arguments) {
      const std::string name = name_in(argument);
      if (name == command->get_name()) break;
      if (has_option(*command, name) && !has_option(program, name))
        return name + ": expected after " + command->get_name() + ", got before it";
    }
  }
  return "";
}

// Some commands take their model without -m.
std::string model_as_option(const CLI::App& program, const std::vector<std::string>& arguments) {
  const auto is_model = [](const std::string& argument) { return argument == "-m" || name_in(argument) == "--model"; };
  const auto given = std::ranges::find_if(arguments, is_model);
  for (const CLI::App* command : program.get_subcommands()) {
    if (given == arguments.end() || has_option(*command, "-m")) continue;
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_positional() && CLI::detail::to_lower(option->get_name()).ends_with("model"))
        return name_in(*given) + ": expected the model without it, as " + option->get_name();
    }
  }
  return "";
}

// Without a command the options of all are known.
std::string unknown_option(const CLI::App& program, const std::vector<std::string>& arguments) {
  const std::vector<CLI::App*> given = program.get_subcommands();
  std::vector<const CLI::App*> commands = program.get_subcommands(nullptr);
  if (!given.empty()) commands.assign(given.begin(), given.end());
  std::vector<std::string> known = option_names(program);
  for (const CLI::App* command : commands) {
    for (std::string& name : option_names(*command)) known.push_back(std::move(name));
  }
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (const std::string& argument : arguments) {
    const std::string name = name_in(argument);
    if (!name.starts_with("--") || name == "--" || std::find(known.begin(), known.end(), name) != known.end()) continue;
    return "unknown option " + name + did_you_mean(name, known);
  }
  return "";
}

// An option without its value is described.
std::string description_of(const CLI::App& program, const std::string& message) {
  const std::string name = message.substr(0, message.find(':'));
  for (const CLI::App* command : program.get_subcommands()) {
    if (has_option(*command, name)) return " (" + command->get_option(name)->get_description() + ")";
  }
  return "";
}

}  // namespace

std::string usage_error(const CLI::App& program, const std::vector<std::string>& arguments,
                        const CLI::ParseError& error) {
  std::string message;
  if (program.get_subcommands().empty()) message = unknown_command(program);
  if (message.empty()) message = file_as_option(arguments);
  if (message.empty()) message = option_before_command(program, arguments);
  if (message.empty()) message = model_as_option(program, arguments);
  const bool has_command = !program.get_subcommands().empty();
  const auto is = [&](CLI::ExitCodes code) { return error.get_exit_code() == static_cast<int>(code); };
  if (message.empty() && (!has_command || is(CLI::ExitCodes::ExtrasError) || is(CLI::ExitCodes::RequiredError)))
    message = unknown_option(program, arguments);
  if (!message.empty()) return message;
  message = error.what();
  return message.ends_with(" missing") ? message + description_of(program, message) : message;
}

void refuse_empty_arguments(const CLI::App& command) {
  const auto is_path = [](const CLI::Option& option) {
    return option.get_positional() || option.check_lname("model") || option.check_lname("output");
  };
  for (const CLI::Option* option : command.get_options()) {
    if (option->check_lname("text")) continue;  // its error says which of the texts has no words
    if (option->count() == 0 || std::ranges::count(option->results(), "") == 0) continue;
    throw CLI::ValidationError(option->get_name(), is_path(*option) ? "expected a path, got '' (the path is empty)"
                                                                    : "expected a value, got '' (it is empty)");
  }
  for (const CLI::App* subcommand : command.get_subcommands()) refuse_empty_arguments(*subcommand);
}

}  // namespace vitrail::app
