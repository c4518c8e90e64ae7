// SPDX-License-Identifier: Apache-2.0
#pragma once
// Following symbolic links.
#include <filesystem>

namespace vitrail {

// Follows symbolic links at the end of a path, also to a file that does not exist yet.
std::filesystem::path final_target(std::filesystem::path path);

}  // namespace vitrail
