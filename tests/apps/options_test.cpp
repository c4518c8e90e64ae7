// SPDX-License-Identifier: Apache-2.0
// Every option of every command has a check of its effect: an option without one fails, and so does a check without an
// option.  The options are read from the help, which the program makes from its tree of commands.
#include <set>

#include "tests/apps/option_effects.h"
#include "vitrail/base/text.h"

namespace vitrail::testing {
namespace {

OptionEffects all_effects() {
  OptionEffects all = model_option_effects();
  for (const OptionEffects& part :
       {inference_option_effects(), zeroshot_option_effects(), serve_option_effects(),   search_option_effects(),
        audit_option_effects(),     segment_option_effects(),  depth_option_effects(),   label_map_option_effects(),
        clipseg_option_effects(),   matte_option_effects(),    detect_option_effects(),  owl_option_effects(),
        pose_option_effects(),      box_eval_option_effects(), frame_option_effects(),   anomaly_option_effects(),
        output_option_effects(),    pretrain_option_effects(), explain_option_effects(), tool_option_effects()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

// "" for the program, then its commands and theirs: "anomaly fit".
std::vector<Arguments> commands() {
  std::vector<Arguments> all{{}};
  for (size_t i = 0; i < all.size(); ++i) {
    const Arguments command = all[i];
    const std::string help = run(command + Arguments{"--help"}).out;
    const size_t begin = help.find("Subcommands:");
    if (begin == help.npos) continue;
    for (const std::string& line : lines_of(help.substr(begin)))
      if (line.size() > 2 && line.starts_with("  ") && line[2] != ' ')
        all.push_back(command + Arguments{line.substr(2, line.find(' ', 2) - 2)});
  }
  return all;
}

// "classify --top"; "-h,--help" is the same option in all commands.
std::multiset<std::string> options_in_help() {
  std::multiset<std::string> options;
  for (const Arguments& command : commands()) {
    for (const std::string& line : lines_of(run(command + Arguments{"--help"}).out)) {
      if (!line.starts_with("  -")) continue;
      const std::string names = line.substr(2, line.find(' ', 2) - 2);
      if (names != "-h,--help") options.insert(join(command, " ") + " " + names);
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
  for (const Arguments& command : commands()) {
    const std::string name = join(command, " "), help = run(command + Arguments{"-h"}).out;
    EXPECT_EQ(help, run(command + Arguments{"--help"}).out) << name;
    EXPECT_TRUE(contains(help, "Usage: vitrail " + name)) << name;
  }
}

class OptionEffectTest : public ::testing::TestWithParam<OptionEffect> {};

TEST_P(OptionEffectTest, IsAsDocumented) { GetParam().check(); }

std::string name_of_check(const ::testing::TestParamInfo<OptionEffect>& info) {
  std::string name = (info.param.command.empty() ? "vitrail" : info.param.command) + "_" +
                     info.param.names.substr(info.param.names.rfind("--") + 2);
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == ' '; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, OptionEffectTest, ::testing::ValuesIn(all_effects()), name_of_check);

}  // namespace
}  // namespace vitrail::testing
