// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/shell/parser_messages.h"

#include <cfloat>
#include <cstdlib>
#include <optional>
#include <utility>

#include "vitrail/base/near_names_internal.h"

namespace vitrail::app {
namespace {

using Parts = std::pair<std::string, std::string>;

// The text before and after the first or, for text that follows a user's value, the last `separator`.
std::optional<Parts> split_at(const std::string& text, const std::string& separator, bool last = false) {
  const size_t at = last ? text.rfind(separator) : text.find(separator);
  if (at == std::string::npos) return std::nullopt;
  return Parts{text.substr(0, at), text.substr(at + separator.size())};
}

// "text,json,csv" → {"text", "json", "csv"}
std::vector<std::string> split_list(std::string list) {
  std::vector<std::string> names;
  while (const auto parts = split_at(list, ",")) {
    names.push_back(parts->first);
    list = parts->second;
  }
  names.push_back(list);
  return names;
}

// "text, json or csv"
std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::string did_you_mean(const std::vector<std::string>& near) {
  return near.empty() ? "" : "; did you mean " + alternatives(near) + "?";
}

std::string expected(const std::string& name, const std::string& what, const std::string& value) {
  return name + ": expected " + what + ", got '" + value + "'";
}

// "1.500000" → "1.5"
std::string short_number(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

// The type of an option in the parser's words, such as "INT:INT in [1 - 1024]".
std::string type_of(const CLI::App& program, const std::string& name) {
  std::vector<const CLI::App*> commands{&program};
  for (const CLI::App* command : program.get_subcommands()) commands.push_back(command);
  for (const CLI::App* command : commands) {
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_name() == name) return option->get_type_name();
    }
  }
  return "";
}

std::string kind_of(const CLI::App& program, const std::string& name) {
  const std::string type = type_of(program, name);
  if (type.find("FLOAT") != std::string::npos) return "a number";
  if (type.find("INT") != std::string::npos) return "an integer";
  return type.empty() ? "true or false" : "another value";  // a flag has no type
}

// "jso not in {text,json,csv}"
std::string choice_message(const std::string& name, const std::string& problem) {
  const auto parts = split_at(problem, " not in {", true);
  if (!parts || !parts->second.ends_with('}')) return "";
  const std::vector<std::string> names = split_list(parts->second.substr(0, parts->second.size() - 1));
  std::vector<std::string> near = near_names(parts->first, names);
  std::erase_if(near, [&, nearest = near.empty() ? "" : near.front()](const std::string& candidate) {
    return edit_distance(parts->first, candidate) > edit_distance(parts->first, nearest);
  });
  return expected(name, alternatives(names), parts->first) + did_you_mean(near);
}

// "Value 0 not in range 1 to 1024"
std::string range_message(const CLI::App& program, const std::string& name, const std::string& problem) {
  const std::string start = "Value ";
  const auto parts = split_at(problem, " not in range ", true);
  const auto range = parts ? split_at(parts->second, " to ") : std::nullopt;
  if (!range || !parts->first.starts_with(start)) return "";
  const bool is_open = std::strtod(range->second.c_str(), nullptr) >= DBL_MAX;
  const std::string from = is_open ? " of at least " : " from ",
                    to = is_open ? "" : " to " + short_number(range->second);
  return expected(name, kind_of(program, name) + from + short_number(range->first) + to,
                  parts->first.substr(start.size()));
}

// Messages that begin with an option's name: "--threads: 1 required INT missing".
std::string option_message(const CLI::App& program, const std::string& name, const std::string& problem) {
  if (const std::string text = choice_message(name, problem); !text.empty()) return text;
  if (const std::string text = range_message(program, name, problem); !text.empty()) return text;
  if (problem.find(" required ") != std::string::npos && problem.ends_with(" missing"))
    return name + ": expected a value, got none";
  if (const auto parts = split_at(problem, "At Most 1 required but received "); parts && parts->first.empty())
    return name + ": expected one value, got " + parts->second;
  if (const auto parts = split_at(problem, " as a ", true); parts && parts->first.starts_with("Failed parsing "))
    return expected(name, kind_of(program, name), parts->first.substr(15));
  return "";
}

}  // namespace

std::string suggestion(const std::string& name, const std::vector<std::string>& candidates) {
  return did_you_mean(near_names(name, candidates));
}

std::string parser_message(const CLI::App& program, const CLI::ParseError& error) {
  const std::string message = error.what(), conversion = "Could not convert: ";
  if (message == "A subcommand is required") return "expected a command, got none";
  if (message.starts_with(conversion)) {
    if (const auto parts = split_at(message.substr(conversion.size()), " = "))
      return expected(parts->first, kind_of(program, parts->first), parts->second);
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const auto parts = split_at(message, " is required", true);
    const bool is_name = parts && parts->first.find(' ') == std::string::npos;  // else it describes several options
    if (parts)
      return is_name ? parts->first + ": expected a value, got none" : "expected " + parts->first + ", got none";
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    if (const auto parts = split_at(message, " excludes "))
      return parts->first + ": expected without " + parts->second + ", got both";
  }
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr) {
    if (const auto parts = split_at(message, " requires ")) return parts->first + ": requires " + parts->second;
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    if (const auto parts = split_at(message, " not expected: ")) return "unexpected argument: " + parts->second;
  }
  if (const auto parts = split_at(message, ": ")) {
    const std::string text = option_message(program, parts->first, parts->second);
    if (!text.empty()) return text;
  }
  return message;
}

}  // namespace vitrail::app
