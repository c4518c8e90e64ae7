// SPDX-License-Identifier: Apache-2.0
#pragma once
// The folders of the files that are installed with the library.
#include <filesystem>
#include <vector>

namespace vitrail {

// The folder of the running program; empty if unknown.
std::filesystem::path program_folder();

// The prefixes of installations, most specific first: that of the running program (PREFIX/bin), and that of the shared
// library that this code is in (PREFIX/lib).  Nothing says that something is installed there.
std::vector<std::filesystem::path> installation_prefixes();

}  // namespace vitrail
