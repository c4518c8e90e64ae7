// SPDX-License-Identifier: Apache-2.0
#pragma once
// What --version and info say about the build and the machine.
#include <string>
#include <vector>

namespace vitrail::app {

// "avx512_vnni (of scalar, …)": the instruction set that runs, and those of this processor.
std::string instruction_set_text();

// The shared libraries of this process.  Links are resolved, because the names of the files have the versions.
std::vector<std::string> loaded_libraries();

// The first line is "vitrail 1.2.3"; instruction set, libraries and licence follow.
std::string version_text();

}  // namespace vitrail::app
