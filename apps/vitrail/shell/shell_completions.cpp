// SPDX-License-Identifier: Apache-2.0
// Completions for bash, zsh and fish.  Arguments that are no option are completed as files.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "apps/vitrail/shell/command_tree.h"

#include "vitrail/base/text.h"

namespace vitrail::app {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// A word for a shell: in single quotes, which bash, zsh and fish read alike but for a quote in the text.
std::string single_quoted(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }
std::string quoted_for_fish(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

// In a specification of zsh's _arguments, these characters end a part.
std::string zsh_part(const std::string& text) {
  std::string part = text;
  for (const char* special : {"\\", "[", "]", ":"}) part = replaced(part, special, std::string("\\") + special);
  return part;
}

// The commands with the options of their subcommands among their own.
std::vector<CommandEntry> merged_commands(const CommandTree& tree) {
  std::vector<CommandEntry> commands = tree.commands;
  for (CommandEntry& command : commands) {
    for (const CommandEntry& subcommand : command.subcommands) {
      for (const OptionEntry& option : subcommand.options) {
        if (std::ranges::find(command.options, option.names(), &OptionEntry::names) == command.options.end())
          command.options.push_back(option);
      }
    }
  }
  return commands;
}

std::string names_of(const CommandEntry& command) {
  std::vector<std::string> names;
  for (const OptionEntry& option : command.options) std::ranges::copy(option.names(), std::back_inserter(names));
  return join(names, " ");
}

// bash: a line "command:--option) words=…" for each option with choices.
std::string bash_choices(const std::string& command, const CommandEntry& entry) {
  std::string lines;
  size_t position = 0;
  for (const OptionEntry& option : entry.options) {
    const std::string positional = option.is_positional() && position++ == 0 ? "@" : "";
    if (option.choices.empty() || (option.is_positional() && positional.empty())) continue;
    const std::vector<std::string> names = option.is_positional() ? std::vector{positional} : option.names();
    const std::string patterns = join(names, " | ", [&](const std::string& name) { return command + ":" + name; });
    lines += fmt::format("    {}) words={} ;;\n", patterns, single_quoted(join(option.choices, " ")));
  }
  return lines;
}

// zsh: the specifications of the options of a command.
std::string zsh_options(const CommandEntry& command, const std::string& indent) {
  std::string lines;
  for (const OptionEntry& option : command.options) {
    const std::string values = option.choices.empty() ? "_files" : "(" + join(option.choices, " ") + ")";
    if (option.is_positional()) {
      const char* const many = option.repeatable ? "*" : option.required ? "" : ":";
      lines += fmt::format(" \\\n{}{}", indent, single_quoted(fmt::format("{}:{}:{}", many, option.name, values)));
      continue;
    }
    const std::vector<std::string> names = option.names();
    const std::string all = join(names, " ");
    for (const std::string& name : names) {
      lines += fmt::format(
          " \\\n{}{}", indent,
          single_quoted(fmt::format("{}{}[{}]{}", option.repeatable ? "*" : "(" + all + ")", name,
                                    zsh_part(option.description), option.takes_value ? ":value:" + values : "")));
    }
  }
  return lines;
}

// fish: a line for each option.
std::string fish_options(const std::string& condition, const CommandEntry& command) {
  std::string lines;
  for (const OptionEntry& option : command.options) {
    if (option.is_positional() && option.choices.empty()) continue;
    std::string line = "complete -c vitrail" + condition;
    for (const std::string& name : option.short_names) line += " -s " + name.substr(1);
    for (const std::string& name : option.long_names) line += " -l " + name.substr(2);
    if (option.takes_value && !option.is_positional()) line += option.choices.empty() ? " -r -F" : " -x";
    if (!option.choices.empty()) line += " -a " + quoted_for_fish(join(option.choices, " "));
    lines += line + " -d " + quoted_for_fish(option.description) + "\n";
  }
  return lines;
}

}  // namespace

std::string bash_completion(const CommandTree& tree) {
  const std::string names = join(tree.commands, " ", &CommandEntry::name);
  std::string options, choices = bash_choices("*", tree.program);
  for (const CommandEntry& command : merged_commands(tree)) {
    options += fmt::format("    {}) words+={} ;;\n", command.name, single_quoted(" " + names_of(command)));
    choices += bash_choices(command.name, command);
  }
  return fmt::format(
      R"(# bash completion for vitrail, written by `vitrail completion bash`.
_vitrail() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command= words= word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case " {0} " in *" $word "*) command=$word; break ;; esac
  done
  COMPREPLY=()
  [ -n "$command" ] && [ "$previous" = "$command" ] && [[ $current != -* ]] && previous=@
  case $command:$previous in
{1}  esac
  if [ -z "$words" ] && [[ $current == -* ]]; then
    words={2}
    case $command in
{3}    esac
  elif [ -z "$words" ] && [ -z "$command" ]; then
    words={4}
  fi
  [ -n "$words" ] && COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _vitrail vitrail
)",
      names, choices, single_quoted(names_of(tree.program)), options, single_quoted(names));
}

std::string zsh_completion(const CommandTree& tree) {
  std::string names, cases;
  for (const CommandEntry& command : merged_commands(tree)) {
    names += fmt::format("        {}\n", single_quoted(replaced(command.name, ":", "\\:") + ":" + command.description));
    cases += fmt::format("        {})\n          _arguments -S{}{} ;;\n", command.name,
                         zsh_options(tree.program, "            "), zsh_options(command, "            "));
  }
  return fmt::format(
      R"(#compdef vitrail
# zsh completion for vitrail, written by `vitrail completion zsh`.
_vitrail() {{
  local curcontext=$curcontext state line
  _arguments -C{0} \
    '1:command:->command' \
    '*::argument:->arguments'
  case $state in
    command)
      local -a commands=(
{1}      )
      _describe command commands ;;
    arguments)
      case $words[1] in
{2}      esac ;;
  esac
}}
_vitrail "$@"
)",
      zsh_options(tree.program, "    "), names, cases);
}

std::string fish_completion(const CommandTree& tree) {
  std::string text = "# fish completion for vitrail, written by `vitrail completion fish`.\n";
  text += fish_options("", tree.program);
  for (const CommandEntry& command : merged_commands(tree)) {
    text += fmt::format("complete -c vitrail -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                        quoted_for_fish(command.description));
    text += fish_options(fmt::format(" -n '__fish_seen_subcommand_from {}'", command.name), command);
  }
  return text;
}

}  // namespace vitrail::app
