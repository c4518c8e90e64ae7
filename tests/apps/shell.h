// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the program in a shell, for streams, limits and signals.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/apps/cli_fixture.h"

namespace vitrail::testing {

// The exit status of a shell command in which $V is the program and $M the small model; 128 + n for signal n.
inline int shell(const std::string& command) {
  ::setenv("V", program().c_str(), 1);
  ::setenv("M", small_model().c_str(), 1);
  const int status = std::system(("exec 3>&-; " + command).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace vitrail::testing
