// SPDX-License-Identifier: Apache-2.0
// Every option of every command has a check of its effect: an option without one fails, and so does a check without an
// option.  The options are read from the help, which the program makes from its tree of commands.
#include <set>

#include "tests/apps/option_effects.h"

namespace vitrail::testing {
namespace {

OptionEffects all_effects() {
  OptionEffects all = model_option_effects();
  for (const OptionEffects& part : {inference_option_effects(), zeroshot_option_effects(), serve_option_effects(),
                                    search_option_effects(), audit_option_effects(), segment_option_effects(),
                                    depth_option_effects(), output_option_effects(), tool_option_effects()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

// The first word of each line that begins with two spaces and `first`, of a help text.
std::vector<std::string> words_of_help(const Arguments& command, const std::function<bool(char)>& first) {
  std::vector<std::string> words;
  for (const std::string& line : lines_of(run(command + Arguments{"--help"}).out)) {
    if (line.size() > 2 && line.starts_with("  ") && first(line[2]))
      words.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return words;
}

std::vector<std::string> commands() {
  std::vector<std::string> names = words_of_help({}, [](char c) { return c >= 'a' && c <= 'z'; });
  names.emplace_back("");
  return names;
}

// "classify --top"; "-h,--help" is the same option in all commands.
std::multiset<std::string> options_in_help() {
  std::multiset<std::string> options;
  for (const std::string& command : commands()) {
    const Arguments arguments = command.empty() ? Arguments{} : Arguments{command};
    for (const std::string& names : words_of_help(arguments, [](char c) { return c == '-'; })) {
      if (names != "-h,--help") options.insert(command + " " + names);
    }
  }
  return options;
}

TEST(Options, EachHasACheckOfItsEffect) {
  std::multiset<std::string> checked;
  for (const OptionEffect& effect : all_effects()) checked.insert(effect.command + " " + effect.names);
  const std::multiset<std::string> options = options_in_help();
  EXPECT_TRUE(options.contains("classify --top")) << "the help is not read";
  EXPECT_TRUE(options.contains(" --threads")) << "the help is not read";
  for (const std::string& option : options) {
    EXPECT_EQ(checked.count(option), 1u) << option << ": needs one check in a table of option_effects.h";
  }
  for (const std::string& option : checked) EXPECT_EQ(options.count(option), 1u) << option << ": is no option";
}

TEST(Options, HelpIsAnOptionOfEveryCommand) {
  for (const std::string& command : commands()) {
    const Arguments arguments = command.empty() ? Arguments{} : Arguments{command};
    EXPECT_EQ(run(arguments + Arguments{"-h"}).out, run(arguments + Arguments{"--help"}).out) << command;
    EXPECT_TRUE(contains(run(arguments + Arguments{"-h"}).out, "Usage: vitrail " + command)) << command;
  }
}

class OptionEffectTest : public ::testing::TestWithParam<OptionEffect> {};

TEST_P(OptionEffectTest, IsAsDocumented) { GetParam().check(); }

std::string name_of_check(const ::testing::TestParamInfo<OptionEffect>& info) {
  std::string name = (info.param.command.empty() ? "vitrail" : info.param.command) + "_" +
                     info.param.names.substr(info.param.names.rfind("--") + 2);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, OptionEffectTest, ::testing::ValuesIn(all_effects()), name_of_check);

}  // namespace
}  // namespace vitrail::testing
