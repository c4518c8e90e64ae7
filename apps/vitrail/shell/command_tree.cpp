// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/shell/command_tree.h"

namespace vitrail::app {
namespace {

// CLI::IsMember writes the values into the name of the type: "TEXT:{fp32,half,int8}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{'), end = type.rfind('}');
  std::vector<std::string> choices;
  if (begin == type.npos || end == type.npos) return choices;
  for (const std::string& choice : CLI::detail::split(type.substr(begin + 1, end - begin - 1), ','))
    choices.push_back(choice);
  return choices;
}

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry entry;
  for (const std::string& name : option.get_snames()) entry.short_names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) entry.long_names.push_back("--" + name);
  entry.name = option.get_name(true);
  entry.description = option.get_description();
  entry.environment = option.get_envname();
  entry.choices = choices_of(option);
  entry.takes_value = option.get_items_expected_max() > 0;
  entry.repeatable = option.get_items_expected_max() > 1;
  entry.required = option.get_required();
  return entry;
}

CommandEntry command_of(const CLI::App& command, const std::string& parent = "") {
  CommandEntry entry{parent + command.get_name(), command.get_description(), command.get_footer(), {}};
  for (const CLI::Option* option : command.get_options()) entry.options.push_back(entry_of(*option));
  return entry;
}

}  // namespace

std::vector<std::string> OptionEntry::names() const {
  std::vector<std::string> all = short_names;
  all.insert(all.end(), long_names.begin(), long_names.end());
  return all;
}

CommandTree command_tree(const CLI::App& program) {
  CommandTree tree{command_of(program), {}};
  for (const CLI::App* command : program.get_subcommands(nullptr)) {
    if (command->get_group().empty()) continue;
    tree.commands.push_back(command_of(*command));
    for (const CLI::App* subcommand : command->get_subcommands(nullptr))
      tree.commands.back().subcommands.push_back(command_of(*subcommand, command->get_name() + " "));
  }
  return tree;
}

}  // namespace vitrail::app
