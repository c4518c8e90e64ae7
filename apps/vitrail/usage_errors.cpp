// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/usage_errors.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <sstream>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"

namespace vitrail::app {
namespace {

template <class Number>
bool is_positive(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end && number > 0 && std::isfinite(static_cast<double>(number));
}

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

std::string suggestion(const std::string& name, const std::vector<std::string>& candidates) {
  const std::vector<std::string> near = near_names(name, candidates);
  std::string text;
  for (const std::string& candidate : near) text += (text.empty() ? "; did you mean " : " or ") + candidate;
  return text;
}

std::string unknown_command(const CLI::App& program, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument.starts_with('-')) continue;
    return "unknown command '" + argument + "'" + suggestion(argument, command_names(program));
  }
  return "";
}

std::string unknown_option(const CLI::App& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> known = option_names(program);
  for (const CLI::App* command : program.get_subcommands()) {
    for (std::string& name : option_names(*command)) known.push_back(std::move(name));
  }
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (!name.starts_with("--") || name == "--" || std::find(known.begin(), known.end(), name) != known.end()) continue;
    return "unknown option " + name + suggestion(name, known);
  }
  return "";
}

}  // namespace

const CLI::Validator kPositiveInteger(
    [](const std::string& text) {
      return is_positive<int64_t>(text) ? std::string() : "expected an integer of at least 1, got '" + text + "'";
    },
    "");

const CLI::Validator kPositiveNumber(
    [](const std::string& text) {
      return is_positive<double>(text) ? std::string() : "expected a number above 0, got '" + text + "'";
    },
    "");

std::string usage_error(const CLI::App& program, const std::vector<std::string>& arguments,
                        const CLI::ParseError& error) {
  std::string message;
  if (program.get_subcommands().empty()) message = unknown_command(program, arguments);
  if (message.empty() && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))
    message = unknown_option(program, arguments);
  if (message.empty()) message = error.what();
  return message + "\nRun vitrail --help, or vitrail COMMAND --help, for more information.";
}

}  // namespace vitrail::app
