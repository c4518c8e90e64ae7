// SPDX-License-Identifier: Apache-2.0
// info and --license.
#include <regex>

#include "tests/apps/cli_fixture.h"
#include "vitrail/kernels/isa/isa.h"

namespace vitrail::testing {
namespace {

TEST(Info, NamesTheBuildAndWhatTheMachineRuns) {
  const ProgramResult result = run_program({"info", "--threads", "3"}, "", {{"VITRAIL_CPU", "scalar"}});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto has = [&](const std::string& pattern) { return std::regex_search(result.out, std::regex(pattern)); };
  EXPECT_TRUE(has("version +[0-9]+[.][0-9]+[.][0-9]+\n")) << result.out;
  EXPECT_TRUE(has("commit +([0-9a-f]{12}(-dirty)?|unknown)\n")) << result.out;
  EXPECT_TRUE(has("compiler +(GNU|Clang) [0-9.]+, (Release|Debug|RelWithDebInfo)\n")) << result.out;
  EXPECT_TRUE(has("instruction set scalar [(]of scalar")) << result.out;
  EXPECT_TRUE(has("threads +3 [(]of [0-9]+ available[)]\n")) << result.out;
  EXPECT_TRUE(has("libpng16[.]so[.]16[.][0-9]+")) << result.out;  // with its version
}

TEST(Info, AnInstructionSetThatTheMachineLacksIsTheErrorAlone) {
  const ProgramResult result = run_program({"info"}, "", {{"VITRAIL_CPU", "neither"}});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "VITRAIL_CPU")) << result.err;
}

TEST(License, NamesThoseOfTheLibraries) {
  const ProgramResult result = run_program({"--license"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* name : {"Apache License, Version 2.0", "Highway", "CLI11", "oneDNN", "libjpeg-turbo"}) {
    EXPECT_TRUE(contains(result.out, name)) << name;
  }
}

}  // namespace
}  // namespace vitrail::testing
