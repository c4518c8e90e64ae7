// SPDX-License-Identifier: Apache-2.0
#pragma once
// The files that a command writes beside the one that -o names: they replace files of their own kind alone.
#include <filesystem>

namespace vitrail::app {

// The list of paths and the record (embedding_info.h) beside an array or an index.  Throws Error naming one that would
// replace another file: a list that has neither its array nor its record beside it, or JSON that is no record.  An
// empty file is of any kind: an interrupted run leaves one where it writes in place.  record: "" if none is written.
void check_companions(const std::filesystem::path& array, const std::filesystem::path& list,
                      const std::filesystem::path& record);

// The same for the records of a shard's images (shard_images.h), which are replaced unless their array exists.
void check_shard_list(const std::filesystem::path& array, const std::filesystem::path& list);

}  // namespace vitrail::app
