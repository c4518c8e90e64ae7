// SPDX-License-Identifier: Apache-2.0
#pragma once
// The commands and options as data, for completions and the manual page.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace vitrail::app {

struct OptionEntry {
  std::vector<std::string> short_names, long_names;  // "-m", "--model"; both empty: a positional argument
  std::string name;                                  // the positional argument
  std::string description;
  std::string environment;           // a variable that sets it, or empty
  std::vector<std::string> choices;  // the values it takes; empty: any
  bool takes_value = false, repeatable = false, required = false;

  bool is_positional() const { return short_names.empty() && long_names.empty(); }
  std::vector<std::string> names() const;  // short ones first
};

struct CommandEntry {
  std::string name, description, footer;
  std::vector<OptionEntry> options;
  std::vector<CommandEntry> subcommands = {};  // their names begin with the command's: "anomaly fit"
};

// The program, with the options that hold for all commands, and its commands.  Hidden ones are left out.
struct CommandTree {
  CommandEntry program;
  std::vector<CommandEntry> commands;
};

CommandTree command_tree(const CLI::App& program);

// Texts for the shells and for man.
std::string bash_completion(const CommandTree& tree);
std::string zsh_completion(const CommandTree& tree);
std::string fish_completion(const CommandTree& tree);
std::string manual_page(const CommandTree& tree);

}  // namespace vitrail::app
