// SPDX-License-Identifier: Apache-2.0
// docs/cli.md against the commands: it names options that they have, with their defaults.
#include <algorithm>
#include <regex>
#include <set>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/apps/shell.h"
#include "vitrail/base/text.h"

namespace vitrail::testing {
namespace {

using Names = std::vector<std::string>;

// All matches of the pattern's first group.
Names found_in(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return {std::sregex_token_iterator(text.begin(), text.end(), regex, 1), std::sregex_token_iterator()};
}

struct Section {
  std::string title, text;
};

std::vector<Section> sections() {
  std::vector<Section> result{{}};
  for (const std::string& line : lines_of(content_of(source("docs/cli.md")))) {
    if (line.starts_with("#")) result.push_back({line.substr(line.find(' ') + 1), ""});
    result.back().text += line + "\n";
  }
  return result;
}

Names commands() {
  const std::string help = run({"--help"}).out;
  return found_in(help.substr(help.find("Subcommands:")), R"(\n  ([a-z]+) )");
}

// The help of a command and of the commands below it.
std::string help_of(const std::string& command) {
  std::string help = run({command, "--help"}).out;
  if (command == "anomaly") help += run({command, "fit", "--help"}).out;
  return help;
}

// The line of an option in a help; empty without one.
std::string line_of(const std::string& help, const std::string& option) {
  const std::regex names("^  (-\\w,)?" + option + "\\b.*");
  for (const std::string& line : lines_of(help)) {
    if (std::regex_match(line, names) && !std::regex_search(line, std::regex("^  (-\\w,)?" + option + "-")))
      return line;
  }
  return "";
}

// The commands that a section's title names; empty for another section.
Names commands_of(const Section& section) {
  Names names = found_in(section.title, "(\\w+)");
  std::erase(names, "and");
  const Names all = commands();
  const auto is_command = [&](const std::string& name) { return std::ranges::find(all, name) != all.end(); };
  return !names.empty() && std::ranges::all_of(names, is_command) ? names : Names();
}

TEST(CliDocumentation, OptionsOfASectionAreThoseOfItsCommand) {
  const std::string program = run({"--help"}).out;
  size_t options = 0, defaults = 0;
  for (const Section& section : sections()) {
    const Names names = commands_of(section);
    if (names.empty()) continue;
    const std::string help = join(names, "\n", help_of) + program;
    static const std::regex option(R"((--[a-z][a-z-]*)( (-?[0-9][0-9.,]*)[`\]])?)");
    for (std::sregex_iterator at(section.text.begin(), section.text.end(), option), end; at != end; ++at) {
      const std::string line = line_of(help, (*at)[1]), preset = (*at)[3];
      EXPECT_NE(line, "") << section.title << ": " << at->str();
      ++options;
      if (preset.empty() || (*at)[1] == "--layer") continue;  // its values are examples
      EXPECT_TRUE(std::regex_search(line, std::regex("=\\[?" + preset + "\\b"))) << at->str() << ": " << line;
      ++defaults;
    }
  }
  EXPECT_GT(options, 60u) << "the document is read";
  EXPECT_GE(defaults, 5u);
}

// "`--tome R` (`classify`, `embed`): …"
TEST(CliDocumentation, SharedOptionsHaveTheirCommands) {
  const auto all = sections();
  const auto shared = std::ranges::find(all, "Shared options", &Section::title);
  ASSERT_NE(shared, all.end());
  static const std::regex row(R"(\n- `(--[a-z]+)[^`]*` \((`[a-z]+`(?:, `[a-z]+`)*)\):)");
  size_t rows = 0;
  for (std::sregex_iterator at(shared->text.begin(), shared->text.end(), row), end; at != end; ++at, ++rows) {
    Names named = found_in((*at)[2], "`([a-z]+)`"), have = commands();
    std::erase_if(have, [&](const std::string& command) { return line_of(help_of(command), (*at)[1]).empty(); });
    EXPECT_EQ(std::set(named.begin(), named.end()), std::set(have.begin(), have.end())) << (*at)[1];
  }
  EXPECT_GE(rows, 2u);
}

}  // namespace
}  // namespace vitrail::testing
