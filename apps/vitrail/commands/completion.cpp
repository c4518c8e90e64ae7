// SPDX-License-Identifier: Apache-2.0
// A hidden command, which the build runs.
#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/shell/command_tree.h"

namespace vitrail::app {
namespace {

int print_completion(const std::string& kind, const CLI::App& program) {
  const CommandTree tree = command_tree(program);
  write_output(kind == "bash"   ? bash_completion(tree)
               : kind == "zsh"  ? zsh_completion(tree)
               : kind == "fish" ? fish_completion(tree)
                                : manual_page(tree));
  return 0;
}

}  // namespace

void add_completion(CLI::App& program, const GlobalOptions&, Run& run) {
  auto kind = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("completion", "Print completions for a shell, or the manual page");
  command->group("");
  command->footer("Example: vitrail completion bash > ~/.local/share/bash-completion/completions/vitrail");
  command->add_option("kind", *kind, "bash, zsh, fish or man")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
  command->callback([kind, &program, &run] { run = [kind, &program] { return print_completion(*kind, program); }; });
}

}  // namespace vitrail::app
