// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files that are distributed with vitrail: models, recipes and a dataset.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace vitrail {

// The folders that may have them, in the order in which they are searched: $VITRAIL_HOME, the installations of the
// running program and of the shared library (PREFIX/share/vitrail), the source tree of the program's build, and the
// configured installation prefix.
std::vector<std::filesystem::path> installation_folders();

// The path itself if there is something, else "examples/digits.zip" or "recipes/digits.json" in the first installation
// folder that has it; nothing if no folder has.  An absolute path is searched nowhere else.
std::optional<std::filesystem::path> find_installed(const std::filesystem::path& path);

}  // namespace vitrail
