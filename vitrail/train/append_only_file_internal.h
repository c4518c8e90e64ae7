// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files that grow while a run goes on, and are cut back when it is resumed.
#include <cstdint>
#include <filesystem>
#include <fstream>

namespace vitrail::train {

// Opens `path` for appending after its first `keep` bytes; what follows them is cut off.  A file that is shorter than
// that is an Error, and so is one that cannot be written.
std::ofstream open_for_append(const std::filesystem::path& path, uint64_t keep);

// Hands what was written to the operating system and has it synced.  Throws Error naming the path when a write failed.
void flush_to_disk(std::ofstream& stream, const std::filesystem::path& path);

}  // namespace vitrail::train
