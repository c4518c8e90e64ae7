// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading a file into memory.
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace vitrail {

// The content of a file, or all bytes that a pipe or a device delivers.  Unlike a mapping, it does not change with the
// file.  Throws Error naming the path if it is a folder, cannot be read, or has more than `max_bytes` bytes, which is
// known before they are read or allocated if the file has a size.
std::vector<std::byte> read_file(const std::filesystem::path& path, size_t max_bytes);

// The same as text.  By default at most 64 MB, enough for label files, key maps and configurations.
std::string read_text_file(const std::filesystem::path& path, size_t max_bytes = 64'000'000);

// The same of a regular file or a link to one, for a folder that may come from anywhere: a pipe without a writer would
// be waited for.  Throws Error for pipes, sockets and devices, too.
std::string read_regular_text_file(const std::filesystem::path& path, size_t max_bytes = 64'000'000);

}  // namespace vitrail
