// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the vitrail program.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace vitrail::testing {

struct ProgramResult {
  int status = -1;  // exit status; 128 + n when signal n killed it
  std::string out, err;
};

// Runs vitrail with `input` on its standard input and `environment` added to the environment of this process.
ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& input = "",
                          const std::map<std::string, std::string>& environment = {},
                          const std::filesystem::path& program = testing::program());

std::vector<std::string> lines_of(const std::string& text);

}  // namespace vitrail::testing
