// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the vitrail program.
#include <sys/types.h>

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

struct ProgramFiles {
  std::filesystem::path in, out, err;  // standard input, which exists, standard output and standard error
};

// Starts a program with `environment` added to the environment of this process.  Not by fork(): a copy of a process
// with other threads may wait forever for a lock that one of them held.  Throws std::runtime_error if that fails.
pid_t start_program(const std::filesystem::path& program, std::vector<std::string> arguments, const ProgramFiles& files,
                    const std::map<std::string, std::string>& environment = {});

// Runs vitrail with `input` on its standard input and `environment` added to the environment of this process.
ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& input = "",
                          const std::map<std::string, std::string>& environment = {},
                          const std::filesystem::path& program = testing::program());

std::vector<std::string> lines_of(const std::string& text);

}  // namespace vitrail::testing
