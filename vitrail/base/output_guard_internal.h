// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keeps a program from replacing a file that it also reads: an image, a list, a model.
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

namespace vitrail {

// The files that the program is going to write.  Those that do not exist, and those that are not regular, are ignored.
void guard_outputs(const std::vector<std::string>& paths);

// Called for each file that is opened for reading.  Throws Error naming `path` if it is a guarded output.
void refuse_reading_outputs(const struct stat& opened, const std::filesystem::path& path);

// Called before a file is replaced.  Returns whether it is a guarded output that was opened for reading; else it is
// guarded no longer, because another file may get its inode.
bool was_read_as_input(const std::filesystem::path& path);

}  // namespace vitrail
