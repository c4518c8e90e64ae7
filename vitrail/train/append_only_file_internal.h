// SPDX-License-Identifier: Apache-2.0
#pragma once
// Append-only files that a resumed run truncates to their length at the checkpoint.
#include <cstdint>
#include <filesystem>
#include <fstream>

namespace vitrail::train {

// Truncates `path` to its first `keep` bytes, or creates it, and opens it for appending.  Throws Error if the file is
// shorter than `keep` or cannot be written.
std::ofstream open_for_append(const std::filesystem::path& path, uint64_t keep);

// Flushes the stream and syncs the file to disk.  Throws Error naming the path if a write failed.
void flush_to_disk(std::ofstream& stream, const std::filesystem::path& path);

}  // namespace vitrail::train
