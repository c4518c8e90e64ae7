// SPDX-License-Identifier: Apache-2.0
#pragma once
// Looking at paths that a user gave.
#include <filesystem>

namespace vitrail {

enum class PathKind { missing, folder, other };

// What is at the path.  Throws Error with the reason if that cannot be found out: no permission for a folder on the
// way, a name that is too long, a link that leads to itself.
PathKind look_up(const std::filesystem::path& path);
inline bool is_present(const std::filesystem::path& path) { return look_up(path) != PathKind::missing; }
inline bool is_folder(const std::filesystem::path& path) { return look_up(path) == PathKind::folder; }

}  // namespace vitrail
